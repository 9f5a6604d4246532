import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// `npm run dev` shows the sources beside a server that was started on the usual port
const server = "http://127.0.0.1:8188";

export default defineConfig({
  // relative addresses, so that the editor also works below a path of a proxy
  base: "./",
  plugins: [react()],
  build: { target: "es2022", chunkSizeWarningLimit: 900 },
  server: { proxy: { "/api": server, "/examples": server, "/ws": { target: server, ws: true } } },
});
