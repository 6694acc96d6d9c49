// The web page of the chat view. It may load its own script and its own style, and nothing else from anywhere.

export interface Parts {
  /** A word that only this page knows; scripts without it do not run. */
  nonce: string;
  /** Where styles may come from. */
  source: string;
  script: string;
  style: string;
}

export function page({ nonce, source, script, style }: Parts): string {
  const policy = `default-src 'none'; img-src data:; style-src ${source}; script-src 'nonce-${nonce}'`;
  return `<!DOCTYPE html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta http-equiv="Content-Security-Policy" content="${policy}">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <link rel="stylesheet" href="${style}">
  <title>ECA</title>
</head>
<body>
  <script nonce="${nonce}" src="${script}"></script>
</body>
</html>`;
}
