// An address for a blob, given back when the blob changes or its viewer goes.

import { useEffect, useState } from "react";

export function useObjectUrl(blob: Blob | undefined): string | null {
  const [address, setAddress] = useState<string | null>(null);
  useEffect(() => {
    if (!blob) {
      setAddress(null);
      return;
    }
    const created = URL.createObjectURL(blob);
    setAddress(created);
    return () => URL.revokeObjectURL(created);
  }, [blob]);
  return address;
}
