// The words of the ECA protocol that this client reads and writes. What it does not use is not here, and what it does
// not know it ignores: servers may be newer.

export interface Position {
  line: number;
  character: number;
}

export interface Range {
  start: Position;
  end: Position;
}

export type Context =
  | { type: "file"; path: string; linesRange?: { start: number; end: number } }
  | { type: "directory"; path: string }
  | { type: "text"; label: string; content: string }
  | { type: "cursor"; path?: string; position?: Range }
  | { type: "repoMap" }
  | { type: "web"; url: string }
  | { type: "mcpResource"; uri: string; name?: string; description?: string; server?: string; mimeType?: string };

export interface FileChange {
  type: "fileChange";
  path: string;
  diff: string;
  linesAdded?: number;
  linesRemoved?: number;
}

export interface Task {
  id: number | string;
  subject: string;
  status: "pending" | "in-progress" | "done";
}

export type Details =
  | FileChange
  | { type: "jsonOutputs"; jsons: string[] }
  | { type: "subagent"; subagentChatId?: string; agentName?: string; model?: string; step?: number; maxSteps?: number }
  | { type: "task"; tasks: Task[] }
  | { type: "shellCommand"; commands?: unknown[]; background?: boolean };

export interface ToolCall {
  id: string;
  name: string;
  server?: string;
  origin?: string;
  summary?: string;
  details?: Details;
  arguments?: unknown;
}

export interface Usage {
  sessionTokens?: number;
  sessionCost?: string;
  limit?: { context?: number; output?: number };
}

export type Content =
  | { type: "text"; text: string; contentId?: string }
  | { type: "url"; title?: string; url: string }
  | { type: "progress"; state: "running" | "finished"; text?: string }
  | ({ type: "usage" } & Usage)
  | { type: "reasonStarted"; id: string }
  | { type: "reasonText"; id: string; text: string }
  | { type: "reasonFinished"; id: string; totalTimeMs?: number }
  | ({ type: "toolCallPrepare"; argumentsText?: string } & ToolCall)
  | ({ type: "toolCallRun"; manualApproval?: boolean } & ToolCall)
  | ({ type: "toolCallRunning" } & ToolCall)
  | ({ type: "toolCalled"; error?: boolean; outputs?: { type: string; text?: string }[]; totalTimeMs?: number } & ToolCall)
  | ({ type: "toolCallRejected"; reason?: string } & ToolCall)
  | { type: "metadata"; title?: string }
  | { type: "image"; mediaType: string; base64: string }
  | { type: "flag"; text: string; contentId?: string }
  | { type: "hookActionFinished"; name: string; status?: number; output?: string; error?: string };

export interface ContentReceived {
  chatId: string;
  parentChatId?: string;
  role: "user" | "assistant" | "system";
  content: Content;
}

export interface ConfigUpdated {
  chatId?: string;
  chat?: {
    models?: string[];
    agents?: string[];
    behaviors?: string[];
    selectModel?: string;
    selectAgent?: string;
    selectBehavior?: string;
    variants?: string[];
    selectVariant?: string | null;
    selectTrust?: boolean;
    welcomeMessage?: string;
  };
}

export interface AskQuestion {
  chatId: string;
  question: string;
  options?: { label: string; description?: string }[];
  allowFreeform?: boolean;
}

export interface Answer {
  answer: string | null;
  cancelled: boolean;
}

export interface ChatSummary {
  id: string;
  title?: string | null;
  status?: string;
  updatedAt?: number;
  messageCount?: number;
}

export interface ChatOpenResult {
  found: boolean;
  title?: string | null;
  selection?: { model?: string | null; agent?: string; variant?: string | null; variants?: string[]; trust?: boolean };
}

export interface ToolServer {
  type: "native" | "mcp";
  name: string;
  status: string;
  tools?: { name: string; description?: string }[];
}

/** What to say instead of a proposal, and how loudly. */
export interface Problem {
  type: "error" | "warning" | "info";
  message: string;
}

export interface CompletionInlineResult {
  items?: { text: string; docVersion: number; range: Range }[];
  error?: Problem;
}

export type JobStatus = "running" | "completed" | "failed" | "killed";

export interface JobSummary {
  id: string;
  status: JobStatus;
  label: string;
  /** The command, in full. */
  summary?: string | null;
  startedAt?: string;
  /** For people: `5s`, `5m23s`, `1h2m`, when this was sent. */
  elapsed: string;
  exitCode?: number | null;
  chatId: string;
  chatLabel?: string;
}

/** A job that the server does not know has no status. */
export interface JobOutput {
  lines: { text: string; stream: "stdout" | "stderr" }[];
  status: JobStatus | null;
  exitCode?: number | null;
}

export interface Command {
  name: string;
  description?: string;
  type?: string;
  arguments?: { name: string; required?: boolean }[] | null;
}

export interface QueryResult {
  contexts?: Context[];
  files?: Context[];
  commands?: Command[];
}
