// One line about the server and the chats, in the status bar.
import * as vscode from "vscode";
import type { Chats } from "./chats";
import { countText } from "./jobs";

export class Status implements vscode.Disposable {
  /** Why nothing is proposed at the cursor, if that is a problem. */
  completion = "";
  private readonly item = vscode.window.createStatusBarItem("ecaRs.status", vscode.StatusBarAlignment.Right, 90);

  constructor() {
    this.item.name = "ECA";
    this.item.command = "ecaRs.focus";
    this.item.show();
  }

  update(chats: Chats): void {
    const all = chats.list();
    const waiting = all.filter((chat) => chat.waiting().length > 0).length;
    const busy = all.find((chat) => chat.busy);
    const { item } = this;
    let tooltip: string;
    item.backgroundColor = undefined;
    item.command = "ecaRs.focus";
    if (chats.serverState === "failed") {
      item.text = "$(error) ECA";
      tooltip = `${chats.problem}\nClick to start it again.`;
      item.backgroundColor = new vscode.ThemeColor("statusBarItem.errorBackground");
      item.command = "ecaRs.restart";
    } else if (waiting > 0) {
      item.text = "$(bell-dot) ECA: needs you";
      tooltip = "A tool call or a question waits for you.";
      item.backgroundColor = new vscode.ThemeColor("statusBarItem.warningBackground");
    } else if (busy) {
      item.text = `$(loading~spin) ECA: ${busy.progress || "working"}`;
      tooltip = "The model is at work. Click to see.";
    } else if (chats.serverState === "starting") {
      item.text = "$(loading~spin) ECA";
      tooltip = "The server is starting.";
    } else {
      const model = chats.selection(chats.current).model;
      item.text = "$(comment-discussion) ECA";
      tooltip = model ? `Chat with ${model}` : "Open the chat";
    }
    const jobs = countText(chats.runningJobs);
    item.tooltip = this.described(tooltip, jobs);
    item.accessibilityInformation = { label: [item.text.replace(/\$\([^)]*\)\s*/g, ""), jobs].filter(Boolean).join(", ") };
  }

  private described(text: string, jobs: string): vscode.MarkdownString {
    const tooltip = new vscode.MarkdownString();
    tooltip.isTrusted = { enabledCommands: ["ecaRs.jobs"] };
    tooltip.appendText(text);
    if (jobs) tooltip.appendMarkdown(`\n\n[${jobs}](command:ecaRs.jobs "Show what they print")`);
    if (this.completion) tooltip.appendMarkdown("\n\n").appendText(this.completion);
    return tooltip;
  }

  dispose(): void {
    this.item.dispose();
  }
}
