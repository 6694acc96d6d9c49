// Ghost text: what may follow at the cursor, while the user types if that is wanted, and whenever the user asks.
import * as vscode from "vscode";
import { Completer, type Outcome, type Spot } from "./completer";
import type { Problem } from "./protocol";
import type { Server } from "./server";

/** Who types on wants no answer to what was there a moment ago, and every question costs money. */
const PAUSE_MS = 350;
/** How long VS Code may take to pass the user's wish on. */
const PASSED_ON_MS = 1_000;

const MESSAGE_MS = 5_000;

const SCHEMES = ["file", "untitled"];

/** Asked for by our own command, by VS Code's, or by nobody: while typing. */
type How = "asked" | "invoked" | "typing";

/** The user's wish, until VS Code comes back with it. */
interface Wish {
  document: vscode.TextDocument;
  begun: boolean;
  settle(outcome: Outcome): void;
}

export class InlineCompletion implements vscode.InlineCompletionItemProvider, vscode.Disposable {
  readonly completer: Completer;
  private readonly registration = vscode.languages.registerInlineCompletionItemProvider(
    SCHEMES.map((scheme) => ({ scheme })),
    this,
  );
  private wish: Wish | undefined;

  constructor(
    private readonly server: Server,
    /** Hears once, for the log and the status bar, why nothing is proposed; and of nothing when something is again. */
    private readonly tell: (problem?: Problem) => void,
  ) {
    this.completer = new Completer(server);
  }

  /** Asks at the cursor, whether or not it is done while typing. */
  async ask(): Promise<void> {
    const document = vscode.window.activeTextEditor?.document;
    if (!document || !SCHEMES.includes(document.uri.scheme)) {
      return void vscode.window.showInformationMessage("Put the cursor into a file first.");
    }
    await this.server.start();
    const options = { location: vscode.ProgressLocation.Window, title: "ECA: completing" };
    const { problem } = await vscode.window.withProgress(options, () => this.fulfil(document));
    if (!problem) return;
    const message = `No completion: ${problem.message}`;
    if (problem.type === "info") void vscode.window.showInformationMessage(message);
    else throw new Error(message);
  }

  private async fulfil(document: vscode.TextDocument): Promise<Outcome> {
    const wish: Wish = { document, begun: false, settle: () => {} };
    const outcome = new Promise<Outcome>((resolve) => {
      wish.settle = resolve;
    });
    this.wish = wish;
    await vscode.commands.executeCommand("editor.action.inlineSuggest.trigger");
    const late = new Promise((resolve) => setTimeout(resolve, PASSED_ON_MS));
    await Promise.race([outcome, late]);
    if (wish.begun) return outcome;
    this.wish = undefined;
    return { problem: { type: "info", message: "VS Code shows no inline suggestions here." } };
  }

  async provideInlineCompletionItems(
    document: vscode.TextDocument,
    position: vscode.Position,
    context: vscode.InlineCompletionContext,
    token: vscode.CancellationToken,
  ): Promise<vscode.InlineCompletionItem[]> {
    const how = this.how(document, context.triggerKind);
    if (!how) return [];
    const wish = how === "asked" ? this.wish : undefined;
    if (wish) {
      this.wish = undefined;
      wish.begun = true;
    }
    const { version } = document;
    const spot = spotOf(document, position, context.selectedCompletionInfo);
    const outcome = await this.outcome(spot, how, token);
    wish?.settle(outcome);
    if (!wish) this.report(outcome, how);
    const { proposal } = outcome;
    // The answer is about a text that is not there any more.
    if (!proposal || token.isCancellationRequested || document.isClosed || document.version !== version) return [];
    const { selectedCompletionInfo: chosen } = context;
    if (chosen) {
      // VS Code shows only what goes on from the choice in its list.
      const goesOn = proposal.back === 0 && proposal.ahead === 0;
      return goesOn ? [new vscode.InlineCompletionItem(chosen.text + proposal.text, chosen.range)] : [];
    }
    const replaced = new vscode.Range(position.translate(0, -proposal.back), position.translate(0, proposal.ahead));
    return [new vscode.InlineCompletionItem(proposal.text, replaced)];
  }

  /** Who wants it; nobody, if the user did not turn it on. VS Code also asks when the mouse is over a suggestion of
   * another extension, so its asking alone is no wish of the user's. */
  private how(document: vscode.TextDocument, kind: vscode.InlineCompletionTriggerKind): How | undefined {
    const typing = kind === vscode.InlineCompletionTriggerKind.Automatic;
    if (!typing && this.wish?.document === document) return "asked";
    const setting = vscode.workspace.getConfiguration("ecaRs", document).get<string>("inlineCompletion", "off");
    if (typing) return setting === "whileTyping" ? "typing" : undefined;
    return setting === "whileTyping" || setting === "onRequest" ? "invoked" : undefined;
  }

  private async outcome(spot: Spot, how: How, token: vscode.CancellationToken): Promise<Outcome> {
    if (this.server.state !== "running") return this.wake(how);
    // Who asks expressly may want another answer than the last one.
    const known = how === "asked" ? undefined : this.completer.known(spot);
    if (known) return known;
    if (how === "typing") {
      if (!this.completer.offered || (spot.before + spot.after).trim() === "") return {};
      await pause(token);
      if (token.isCancellationRequested) return {};
    }
    return this.completer.ask(spot, token);
  }

  /** Who turned it on wants a server; one that failed is for the user to start again. */
  private wake(how: How): Outcome {
    if (this.server.state === "stopped") this.server.start().catch(() => {});
    if (how === "typing") return {};
    return { problem: { type: "info", message: "The server is not running yet." } };
  }

  private report({ proposal, problem }: Outcome, how: How): void {
    if (proposal) this.tell();
    if (!problem) return;
    if (how === "invoked") vscode.window.setStatusBarMessage(`No completion: ${problem.message}`, MESSAGE_MS);
    if (this.completer.isNews(problem)) this.tell(problem);
  }

  dispose(): void {
    this.registration.dispose();
  }
}

/** The text around the cursor, as if what is chosen in VS Code's list of suggestions were there already. */
function spotOf(document: vscode.TextDocument, position: vscode.Position, chosen?: vscode.SelectedCompletionInfo): Spot {
  const text = document.getText();
  const [start, end] = [chosen?.range.start ?? position, chosen?.range.end ?? position];
  return {
    document: document.uri.toString(),
    version: document.version,
    before: text.slice(0, document.offsetAt(start)) + (chosen?.text ?? ""),
    after: text.slice(document.offsetAt(end)),
    path: document.uri.scheme === "file" ? document.uri.fsPath : undefined,
  };
}

function pause(token: vscode.CancellationToken): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, PAUSE_MS);
    token.onCancellationRequested(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
