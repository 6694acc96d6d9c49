// What the extension host and the view tell each other. The host keeps the chats; the view only draws them, so it may
// be thrown away and made again at any time.
import type { Details, Usage } from "./protocol";

export type ToolState = "preparing" | "waiting" | "running" | "done" | "failed" | "rejected";

export interface ToolBlock {
  kind: "tool";
  id: number;
  state: ToolState;
  name: string;
  server: string;
  summary?: string;
  /** The arguments: as they stream in, then pretty-printed. */
  arguments: string;
  output: string;
  details?: Details;
  ms?: number;
  reason?: string;
  /** A call of a subagent, shown in the chat it works for. */
  nested: boolean;
}

export interface TextBlock {
  kind: "text" | "system" | "reason";
  id: number;
  text: string;
  /** More text may come. */
  open: boolean;
  ms?: number;
}

export interface QuestionBlock {
  kind: "question";
  id: number;
  question: string;
  options: { label: string; description?: string }[];
  freeform: boolean;
  /** Not there as long as it waits; null if it was declined. */
  answer?: string | null;
}

export type Block =
  | { kind: "user"; id: number; text: string; contentId?: string }
  | TextBlock
  | ToolBlock
  | QuestionBlock
  | { kind: "image"; id: number; mediaType: string; base64: string }
  | { kind: "note"; id: number; text: string };

export type ServerState = "stopped" | "starting" | "running" | "failed";

/** All about the shown chat except what was said in it. */
export interface Head {
  chatId: string;
  title: string;
  busy: boolean;
  stopping: boolean;
  progress: string;
  usage?: Usage;
  model: string;
  agent: string;
  variant: string;
  variants: string[];
  trust: boolean;
  contexts: string[];
  /** Messages that the model has not seen yet. */
  queued: string[];
  /** Other chats in which something waits for the user. */
  elsewhere: number;
  /** How much runs in the background, for whatever chat, in words; empty if nothing does. */
  jobs: string;
  server: ServerState;
  problem: string;
  welcome: string;
}

export type Patch =
  | { type: "head"; head: Head }
  | { type: "add"; block: Block }
  | { type: "put"; block: Block }
  | { type: "append"; id: number; text: string }
  | { type: "clear" };

export interface Completion {
  /** What is put into the prompt. */
  word: string;
  label: string;
  detail: string;
}

export type ToView =
  | { type: "state"; head: Head; blocks: Block[]; openReasoning: boolean; draft?: string }
  | { type: "patches"; patches: Patch[] }
  | { type: "completions"; ticket: number; items: Completion[] }
  | { type: "draft"; text: string }
  | { type: "focus" };

export type QueryKind = "command" | "context" | "file";

export type FromView =
  | { type: "ready" }
  | { type: "send"; text: string; now?: boolean }
  | { type: "stop" }
  | { type: "approve"; id: number; always: boolean }
  | { type: "reject"; id: number }
  | { type: "diff"; id: number }
  | { type: "answer"; id: number; answer: string | null }
  | { type: "complete"; ticket: number; kind: QueryKind; query: string }
  | { type: "removeContext"; index: number }
  | { type: "takeBack" }
  | { type: "run"; command: string }
  | { type: "message"; contentId: string; action: "rollback" | "fork" }
  | { type: "open"; target: string }
  | { type: "copy"; text: string };
