// The one websocket: says hello with our flags, reads events, and comes back after a loss.

import { readBinary, readMessage, type ServerEvent } from "./events.ts";

const FLAGS = { supports_preview_metadata: true, treadle_text: true };
const FIRST_WAIT_MS = 300;
const LONGEST_WAIT_MS = 5000;

export interface SocketListener {
  readonly onEvent: (event: ServerEvent) => void;
  /** called with true after each hello, also after a loss */
  readonly onConnection: (isConnected: boolean) => void;
}

export function openSocket(address: string, listener: SocketListener): () => void {
  let wait = FIRST_WAIT_MS;
  let isWanted = true;
  let timer = 0;
  let socket = connect();

  function connect(): WebSocket {
    const opened = new WebSocket(address);
    opened.binaryType = "arraybuffer";
    opened.onopen = () => {
      wait = FIRST_WAIT_MS;
      opened.send(JSON.stringify({ type: "feature_flags", data: FLAGS }));
      listener.onConnection(true);
    };
    opened.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) => {
      const event = typeof data === "string" ? readMessage(data) : readBinary(data);
      if (event) listener.onEvent(event);
    };
    opened.onclose = () => {
      if (!isWanted) return;
      listener.onConnection(false);
      timer = window.setTimeout(() => {
        socket = connect();
      }, wait);
      wait = Math.min(wait * 2, LONGEST_WAIT_MS);
    };
    return opened;
  }

  return () => {
    isWanted = false;
    window.clearTimeout(timer);
    socket.close();
  };
}
