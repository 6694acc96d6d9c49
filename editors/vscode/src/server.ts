// The server's process and the connection to it, on VS Code's own language client.
import { spawn, type ChildProcess, type ChildProcessWithoutNullStreams } from "node:child_process";
import { PassThrough } from "node:stream";
import {
  CloseAction,
  ErrorAction,
  LanguageClient,
  ResponseError,
  type CancellationToken,
  type InitializeParams,
  type LanguageClientOptions,
  type StaticFeature,
  type StreamInfo,
} from "vscode-languageclient/node";
import type { ServerState } from "./bridge";

export interface Launch {
  command: string;
  args: string[];
  env: Record<string, string>;
  cwd: string | undefined;
}

/** By method. What the server sends is taken at its word: each handler names the type it expects. */
export interface Handlers {
  notifications: Record<string, (params: any) => void>;
  requests: Record<string, (params: any, token: CancellationToken) => unknown>;
}

export interface Options {
  launch(): Launch;
  handlers: Handlers;
  channel: LanguageClientOptions["outputChannel"];
  version: string;
  /** The state changed; the problem is a sentence, or empty. */
  state(state: ServerState, problem: string): void;
  /** The server ended without having been asked to. */
  died(text: string): void;
}

/** A server that dies more often than this within a minute is not started again. */
const RESTARTS_PER_MINUTE = 3;
const MINUTE_MS = 60_000;
const STOP_MS = 3_000;
/** A server that was asked to end may take so long. */
const LEAVE_MS = 1_000;
/** How long the exit code may come after the connection is gone. */
const EXIT_CODE_MS = 1_000;

/** Tells the server that this client knows ECA, beside all that it tells as a language client. */
class CodeAssistant implements StaticFeature {
  constructor(private readonly version: string) {}

  fillInitializeParams(params: InitializeParams): void {
    params.clientInfo = { name: "eca for Visual Studio Code", version: this.version };
  }

  fillClientCapabilities(capabilities: object): void {
    Object.assign(capabilities, {
      codeAssistant: {
        chat: true,
        rewrite: true,
        editor: { diagnostics: true, definition: true, references: true },
        chatCapabilities: { askQuestion: true },
      },
    });
  }

  getState() {
    return { kind: "static" as const };
  }

  initialize(): void {}

  clear(): void {}
}

class Client extends LanguageClient {
  /** A client whose server never came up cannot be stopped, and tries to be. */
  override stop(timeout?: number): Promise<void> {
    return super.stop(timeout).catch(() => {});
  }
}

export class Server {
  state: ServerState = "stopped";
  private client: LanguageClient | undefined;
  private child: ChildProcess | undefined;
  private starting: Promise<void> | undefined;
  private exited: Promise<string> | undefined;
  private endedTooSoon: (reason: Error) => void = () => {};
  private deaths: number[] = [];

  constructor(private readonly options: Options) {}

  /** Starts the server if it does not run, and returns when it does. */
  start(): Promise<void> {
    if (this.state === "running") return Promise.resolve();
    this.starting ??= this.launch().finally(() => {
      this.starting = undefined;
    });
    return this.starting;
  }

  async stop(): Promise<void> {
    const { client, child, exited } = this;
    this.client = undefined;
    this.changed("stopped");
    await client?.stop(STOP_MS);
    await client?.dispose().catch(() => {});
    if (exited) await Promise.race([exited, later(LEAVE_MS, "")]);
    child?.kill("SIGKILL");
  }

  async restart(): Promise<void> {
    this.deaths = [];
    await this.starting?.catch(() => {});
    await this.stop();
    await this.start();
  }

  /** Sends a request, as soon as the server runs. */
  async request<T>(method: string, params: object, token?: CancellationToken): Promise<T> {
    await this.start();
    if (!this.client) throw new Error("the server was stopped");
    return token ? this.client.sendRequest<T>(method, params, token) : this.client.sendRequest<T>(method, params);
  }

  notify(method: string, params: object): void {
    if (this.state !== "running") return;
    // It fails only if the connection is closing, and then `closed` has more to say.
    this.client?.sendNotification(method, params).catch(() => {});
  }

  /** The process, for the log and for tests. */
  get processId(): number | undefined {
    return this.child?.pid;
  }

  private async launch(): Promise<void> {
    this.changed("starting");
    const client: LanguageClient = new Client("ecaRs", "ECA", () => this.spawn(), this.clientOptions(() => client));
    client.registerFeature(new CodeAssistant(this.options.version));
    for (const [method, handler] of Object.entries(this.options.handlers.notifications)) {
      client.onNotification(method, handler);
    }
    for (const [method, handler] of Object.entries(this.options.handlers.requests)) {
      client.onRequest(method, handler);
    }
    this.client = client;
    const tooSoon = new Promise<never>((_, reject) => {
      this.endedTooSoon = reject;
    });
    tooSoon.catch(() => {});
    try {
      await Promise.race([client.start(), tooSoon]);
    } catch (error) {
      if (this.client === client) this.client = undefined;
      this.child?.kill("SIGKILL");
      const problem = error instanceof Error ? error.message : String(error);
      this.changed("failed", problem);
      throw new Error(problem);
    }
    if (this.client === client) this.changed("running");
  }

  private clientOptions(own: () => LanguageClient): LanguageClientOptions {
    return {
      outputChannel: this.options.channel,
      initializationFailedHandler: () => false,
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => {
          void this.closed(own());
          return { action: CloseAction.DoNotRestart, handled: true };
        },
      },
    };
  }

  private spawn(): Promise<StreamInfo> {
    const { command, args, env, cwd } = this.options.launch();
    return new Promise((resolve, reject) => {
      const child = spawn(command, ["server", ...args], { cwd, env: { ...process.env, ...env } });
      this.exited = new Promise((told) => {
        child.once("exit", (code, signal) => told(signal ? `signal ${signal}` : `code ${code}`));
      });
      child.once("error", (error: NodeJS.ErrnoException) => {
        const reason = error.code === "ENOENT" ? "there is no such program" : error.message;
        reject(new Error(`The server '${command}' could not be started: ${reason}. The setting ecaRs.serverPath names it.`));
      });
      child.once("spawn", () => {
        this.child = child;
        child.stderr.on("data", (piece: Buffer) => this.options.channel?.append(piece.toString()));
        resolve(this.streams(child));
      });
    });
  }

  /** The language client cannot bear a server that ends before it is ready: it never hears of that. It hears of a
   * later end by the server's output; writing does not fail before. */
  private streams(child: ChildProcessWithoutNullStreams): StreamInfo {
    const input = new PassThrough();
    input.pipe(child.stdin);
    child.stdin.on("error", () => {});
    const output = new PassThrough();
    child.stdout.pipe(output, { end: false });
    child.stdout.once("close", () => {
      if (this.state !== "starting" || this.child !== child) return output.end();
      void this.exited?.then((how) => this.endedTooSoon(new Error(`The server ended before it was ready (${how}).`)));
    });
    return { reader: output, writer: input };
  }

  private async closed(client: LanguageClient): Promise<void> {
    if (this.client !== client || this.state !== "running") return;
    this.client = undefined;
    const unknown = later(EXIT_CODE_MS, "for an unknown reason");
    const how = await Promise.race([this.exited ?? unknown, unknown]);
    const now = Date.now();
    this.deaths = [...this.deaths.filter((time) => now - time < MINUTE_MS), now];
    const again = this.deaths.length <= RESTARTS_PER_MINUTE;
    const text = `The server ended unexpectedly (${how}).`;
    this.changed(again ? "stopped" : "failed", again ? "" : text);
    this.options.died(again ? `${text} It was started again; what was said before is kept.` : text);
    if (again) await this.start().catch(() => {});
  }

  private changed(state: ServerState, problem = ""): void {
    this.state = state;
    this.options.state(state, problem);
  }
}

function later<T>(ms: number, value: T): Promise<T> {
  return new Promise((resolve) => setTimeout(() => resolve(value), ms));
}

/** Whether the server has no such method, in this version or at all. */
export function notOffered(error: unknown): boolean {
  return error instanceof ResponseError && error.code === -32601;
}
