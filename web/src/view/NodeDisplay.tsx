// What a node shows: the picture in the making, then its pictures, and its text as it grows.

import { useEffect, useRef } from "react";
import { viewAddress } from "../api/http.ts";
import type { StoredFile } from "../api/output.ts";
import { useSession } from "../state/session.ts";
import { showPictures } from "../state/viewer.ts";
import { useObjectUrl } from "./useObjectUrl.ts";

interface Props {
  readonly id: string;
  /** an output node keeps a place for what it will show */
  readonly isOutput: boolean;
}

export function NodeDisplay({ id, isOutput }: Props) {
  const output = useSession((state) => state.outputs[id]);
  const streamed = useSession((state) => state.texts[id]);
  const preview = useSession((state) => state.previews[id]);
  const texts = output?.texts ?? [];
  const text = texts.length > 0 ? texts.join("\n\n") : streamed?.trimStart();
  const isEmpty = !output && !streamed && !preview;
  if (isEmpty) return isOutput && <div className="shown-later" aria-hidden="true" />;
  return (
    <>
      {text !== undefined && text !== "" && <Text text={text} />}
      {output && output.images.length > 0 ? <Pictures files={output.images} /> : <Preview image={preview} />}
    </>
  );
}

function Preview({ image }: { readonly image: Blob | undefined }) {
  const address = useObjectUrl(image);
  return address && <img className="preview" src={address} alt="Preview" draggable={false} />;
}

function Pictures({ files }: { readonly files: readonly StoredFile[] }) {
  return (
    <div className={files.length > 1 ? "pictures several" : "pictures"}>
      {files.map((file, index) => (
        <button
          key={`${file.subfolder}/${file.filename}`}
          type="button"
          className="picture nodrag"
          onClick={() => showPictures(files, index)}
        >
          <img src={viewAddress(file)} alt={file.filename} draggable={false} />
        </button>
      ))}
    </div>
  );
}

/** Follows the end of the text unless the reader scrolled up. */
function Text({ text }: { readonly text: string }) {
  const box = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  useEffect(() => {
    if (box.current && follows.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text]);
  const onScroll = () => {
    const { scrollTop, scrollHeight, clientHeight } = box.current ?? {
      scrollTop: 0,
      scrollHeight: 0,
      clientHeight: 0,
    };
    follows.current = scrollHeight - scrollTop - clientHeight < 24;
  };
  return (
    <div ref={box} className="shown-text nodrag nowheel" onScroll={onScroll}>
      {text}
    </div>
  );
}
