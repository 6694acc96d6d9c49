// As much of VS Code's interface as its language client needs to run outside of VS Code: events that never come,
// settings and an editor that a test may set, and classes that hold what they are given.

const nothing = () => {};
const disposable = { dispose: nothing };

class Uri {
  constructor(path) {
    this.scheme = "file";
    this.path = path;
    this.fsPath = path;
  }
  static file(path) {
    return new Uri(path);
  }
  static parse(text) {
    return new Uri(decodeURIComponent(text.replace(/^file:\/\//, "")));
  }
  toString() {
    return `file://${encodeURI(this.path)}`;
  }
}

class EventEmitter {
  listeners = new Set();
  event = (listener) => {
    this.listeners.add(listener);
    return { dispose: () => this.listeners.delete(listener) };
  };
  fire(value) {
    for (const listener of this.listeners) listener(value);
  }
  dispose() {
    this.listeners.clear();
  }
}

class CancellationTokenSource {
  cancelled = new EventEmitter();
  token = { isCancellationRequested: false, onCancellationRequested: this.cancelled.event };
  cancel() {
    this.token.isCancellationRequested = true;
    this.cancelled.fire();
  }
  dispose() {}
}

class Position {
  constructor(line, character) {
    Object.assign(this, { line, character });
  }
  translate(lines, characters) {
    return new Position(this.line + lines, this.character + characters);
  }
}

class Range {
  constructor(start, end) {
    Object.assign(this, { start, end });
  }
}

class InlineCompletionItem {
  constructor(insertText, range) {
    Object.assign(this, { insertText, range });
  }
}

const shown = [];
const note = (kind) => (message) => {
  shown.push({ kind, message });
  return Promise.resolve(undefined);
};
const channel = { append: nothing, appendLine: nothing, show: nothing, dispose: nothing };

const known = {
  Uri,
  EventEmitter,
  CancellationTokenSource,
  Position,
  Range,
  InlineCompletionItem,
  InlineCompletionTriggerKind: { Invoke: 0, Automatic: 1 },
  ProgressLocation: { Window: 10 },
  version: "1.100.0",
  env: { appName: "test", language: "en" },
  workspace: {
    get workspaceFolders() {
      return (globalThis.testFolders ?? []).map((path, index) => ({ uri: Uri.file(path), name: path.split("/").pop(), index }));
    },
    textDocuments: [],
    getConfiguration: () => ({ get: (name, fallback) => globalThis.testSettings?.[name] ?? fallback }),
  },
  window: {
    shown,
    createOutputChannel: () => channel,
    showErrorMessage: note("error"),
    showWarningMessage: note("warning"),
    showInformationMessage: note("info"),
    withProgress: (_, task) => task({ report: nothing }, new CancellationTokenSource().token),
    get activeTextEditor() {
      return globalThis.testEditor;
    },
    setStatusBarMessage: note("status"),
    tabGroups: { all: [] },
    visibleTextEditors: [],
  },
  languages: { match: () => 0 },
  commands: { executeCommand: (name) => globalThis.testCommands?.[name]?.() },
  extensions: {},
};

/** Events can be listened to; all else that is not known is a class or an enumeration. */
function open(target) {
  return new Proxy(target, {
    get(from, name) {
      if (name in from || typeof name === "symbol") return from[name];
      if (name.startsWith("on")) return () => disposable;
      if (name.startsWith("register") || name.startsWith("create")) return () => disposable;
      from[name] = open(class {});
      return from[name];
    },
  });
}

for (const name of ["workspace", "window", "languages", "commands", "extensions"]) known[name] = open(known[name]);

module.exports = open(known);
