// Background jobs on the screen: the list to choose from, what a job prints in a read-only editor, and its end.
import * as vscode from "vscode";
import type { Chats } from "./chats";
import { nameOf } from "./commands";
import { pageText, stateText, type Jobs } from "./jobs";
import type { JobSummary } from "./protocol";

export const JOB = "eca-rs-job";

/** The server does not tell of every line, so who looks at a job's output asks so often. */
const LOOK_MS = 1_000;

const ICONS: Record<string, string> = { running: "loading~spin", completed: "check", failed: "error", killed: "circle-slash" };

const LOST = "[this job ended with its server]";

type Item = vscode.QuickPickItem & { job: JobSummary };

/** An editor with the output of a job. */
interface Page {
  uri: vscode.Uri;
  job: JobSummary;
  text: string;
}

export class JobPages implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changes = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changes.event;
  private readonly pages = new Map<string, Page>();
  /** Editors whose user sees the last line, and wants to see the next one. */
  private readonly following = new WeakSet<vscode.TextEditor>();
  private readonly killButton: vscode.QuickInputButton = { iconPath: new vscode.ThemeIcon("debug-stop"), tooltip: "Kill" };
  private readonly registrations = [
    this.changes,
    vscode.workspace.registerTextDocumentContentProvider(JOB, this),
    vscode.workspace.onDidCloseTextDocument((document) => this.pages.delete(document.uri.toString())),
    vscode.workspace.onDidChangeTextDocument(({ document }) => this.grown(document)),
    vscode.window.onDidChangeVisibleTextEditors(() => void this.look()),
    vscode.window.onDidChangeActiveTextEditor(() => this.showKeys()),
  ];
  private list: vscode.QuickPick<Item> | undefined;
  private timer: NodeJS.Timeout | undefined;
  /** Each server counts its jobs from 1. */
  private server = Date.now();

  constructor(
    private readonly jobs: Jobs,
    private readonly chats: () => Chats,
    private readonly setKey: (key: string, value: boolean) => void,
    private readonly guarded: (action: () => unknown) => Promise<void>,
  ) {}

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.pages.get(uri.toString())?.text ?? `${LOST}\n`;
  }

  /** The jobs, to see what one of them printed. */
  async choose(): Promise<void> {
    await this.jobs.refresh();
    const list = vscode.window.createQuickPick<Item>();
    this.list = list;
    list.title = "Background jobs";
    list.matchOnDescription = list.matchOnDetail = true;
    this.fill(list);
    list.onDidTriggerItemButton(({ item }) => {
      list.hide();
      void this.guarded(async () => {
        await this.confirmKill(item.job);
        await this.choose();
      });
    });
    list.onDidAccept(() => {
      const chosen = list.selectedItems[0];
      list.hide();
      if (chosen) void this.guarded(() => this.open(chosen.job));
    });
    list.onDidHide(() => {
      if (this.list === list) this.list = undefined;
      list.dispose();
    });
    list.show();
  }

  private fill(list: vscode.QuickPick<Item>): void {
    const active = list.activeItems[0]?.job.id;
    list.placeholder = this.jobs.list.length > 0 ? "Show what a job printed" : "No job has been started";
    list.keepScrollPosition = true;
    list.items = this.jobs.list.map((job) => ({ ...this.item(job), buttons: job.status === "running" ? [this.killButton] : [] }));
    const same = list.items.filter((item) => item.job.id === active);
    if (same.length > 0) list.activeItems = same;
  }

  private item(job: JobSummary): Item {
    const chat = this.chats().get(job.chatId);
    // A chat without a title is called by its id, which says nothing.
    const name = chat ? nameOf(chat) : job.chatLabel === job.chatId ? "" : (job.chatLabel ?? "");
    const command = (job.summary ?? "").replace(/\s+/g, " ").trim();
    return {
      job,
      label: `$(${ICONS[job.status] ?? "circle-outline"}) ${job.label}`,
      description: [stateText(job), job.elapsed, name].filter(Boolean).join(" · "),
      detail: command,
    };
  }

  /** Ends the job whose output is shown, or one that the user chooses. */
  async kill(): Promise<void> {
    const shown = this.shown();
    if (shown?.job.status === "running") return this.confirmKill(shown.job);
    await this.jobs.refresh();
    const items = this.jobs.running.map((job) => this.item(job));
    if (items.length === 0) return void vscode.window.showInformationMessage("No background job is running.");
    const chosen = await vscode.window.showQuickPick(items, { title: "Kill a background job", matchOnDetail: true });
    if (chosen) await this.confirmKill(chosen.job);
  }

  private async confirmKill(job: JobSummary): Promise<void> {
    const detail = `${job.summary ?? job.label}\n\nEverything that it started ends with it.`;
    const answer = await vscode.window.showWarningMessage(`Kill “${job.label}”?`, { modal: true, detail }, "Kill");
    if (answer !== "Kill") return;
    if (!(await this.jobs.kill(job.id))) void vscode.window.showInformationMessage(`“${job.label}” had ended already.`);
  }

  private async open(job: JobSummary): Promise<void> {
    const name = job.label.replace(/[\\/\s]+/g, " ").trim().slice(0, 60);
    const uri = vscode.Uri.from({ scheme: JOB, path: `/${name} (${job.id}).log`, query: String(this.server) });
    const page = this.pages.get(uri.toString()) ?? { uri, job, text: "" };
    this.pages.set(uri.toString(), page);
    await this.read(page);
    const document = await vscode.workspace.openTextDocument(uri);
    const end = document.lineAt(document.lineCount - 1).range;
    await vscode.window.showTextDocument(document, { selection: end });
    this.showKeys();
  }

  /** The list has changed: jobs began or ended. */
  changed(): void {
    if (this.list) this.fill(this.list);
    for (const page of this.living()) page.job = this.jobs.get(page.job.id) ?? page.job;
    this.showKeys();
    void this.look();
  }

  /** The server is gone; what its jobs printed stays to be read. */
  lost(): void {
    this.server = Date.now();
    for (const page of this.pages.values()) this.end(page, LOST);
  }

  private end(page: Page, how: string): void {
    if (page.job.status !== "running") return;
    page.job = { ...page.job, status: "completed" };
    this.put(page, `${page.text}\n${how}\n`);
    this.showKeys();
  }

  /** Reads what the jobs on the screen have printed, again and again as long as one of them runs. */
  private async look(): Promise<void> {
    clearTimeout(this.timer);
    const pages = this.onScreen();
    for (const page of pages) await this.read(page).catch(() => {}); // A server that dies says so elsewhere.
    clearTimeout(this.timer);
    if (pages.some((page) => page.job.status === "running")) this.timer = setTimeout(() => void this.look(), LOOK_MS);
  }

  private onScreen(): Page[] {
    const shown = new Set(vscode.window.visibleTextEditors.map((editor) => editor.document.uri.toString()));
    return this.living().filter((page) => shown.has(page.uri.toString()));
  }

  /** Those of this server's jobs; others of the same number came before it. */
  private living(): Page[] {
    return [...this.pages.values()].filter((page) => page.uri.query === String(this.server));
  }

  private async read(page: Page): Promise<void> {
    const output = await this.jobs.read(page.job.id);
    const { status, exitCode } = output;
    // The server forgets a job when its model knows how it ended; what was seen of it stays.
    if (status === null) return this.end(page, "[ended]");
    if (status !== page.job.status) page.job = { ...page.job, status, exitCode, elapsed: "" };
    this.put(page, pageText(page.job, output));
  }

  private put(page: Page, text: string): void {
    if (page.text === text) return;
    page.text = text;
    for (const editor of vscode.window.visibleTextEditors) {
      const { document, visibleRanges } = editor;
      if (document.uri.toString() !== page.uri.toString()) continue;
      if (visibleRanges.some((range) => range.end.line >= document.lineCount - 1)) this.following.add(editor);
      else this.following.delete(editor);
    }
    this.changes.fire(page.uri);
  }

  private grown(document: vscode.TextDocument): void {
    if (document.uri.scheme !== JOB) return;
    for (const editor of vscode.window.visibleTextEditors) {
      if (editor.document !== document || !this.following.has(editor)) continue;
      editor.revealRange(document.lineAt(document.lineCount - 1).range);
    }
  }

  private shown(): Page | undefined {
    const editor = vscode.window.activeTextEditor;
    return editor && this.pages.get(editor.document.uri.toString());
  }

  private showKeys(): void {
    this.setKey("ecaRs.shownJobRuns", this.shown()?.job.status === "running");
  }

  dispose(): void {
    clearTimeout(this.timer);
    for (const registration of this.registrations) registration.dispose();
  }
}
