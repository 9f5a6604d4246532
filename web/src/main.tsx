// Starts the editor: theme, connection, definitions, and the workflow that is open first.

import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import "@xyflow/react/dist/base.css";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/canvas.css";
import "./styles/node.css";
import "./styles/panels.css";
import { fetchExample, fetchExamples } from "./api/http.ts";
import { Workspace } from "./panels/Workspace.tsx";
import { useEditor } from "./state/editor.ts";
import { keepWorkflow, keptWorkflow, openJson } from "./state/files.ts";
import { refreshJobs, useJobs } from "./state/jobs.ts";
import { telling } from "./state/notices.ts";
import { connect, refreshDefinitions, showOutputs } from "./state/session.ts";
import { applyTheme } from "./state/settings.ts";

const FIRST_EXAMPLE = "llm_to_image";

async function start(): Promise<void> {
  connect();
  await refreshDefinitions();
  const kept = keptWorkflow();
  if (kept) openJson(kept.workflow, kept.name);
  else await openFirstExample();
  keepWorkflow();
  await refreshJobs();
  showLatestOutputs();
}

/** On a first visit something is there to run. */
async function openFirstExample(): Promise<void> {
  const examples = await fetchExamples();
  const first = examples.find(({ name }) => name === FIRST_EXAMPLE) ?? examples[0];
  if (first) openJson(await fetchExample(first.name), first.title);
}

/** After a reload the nodes show again what this workflow made last. */
function showLatestOutputs(): void {
  const { id } = useEditor.getState().document;
  const latest = useJobs
    .getState()
    .history.find((item) => item.state === "success" && item.workflow?.id === id);
  if (latest) showOutputs(latest.outputs);
}

applyTheme();
const root = document.getElementById("root");
if (!root) throw new Error("the page has no root");
createRoot(root).render(
  <StrictMode>
    <Workspace />
  </StrictMode>,
);
telling(start());
