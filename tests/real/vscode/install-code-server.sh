#!/usr/bin/env bash
# What code-server's own postinstall does, without its downloads: the packages of the workbench, the few native modules
# it needs, built here, and Debian's ripgrep. Run once after `npm ci --ignore-scripts` in this folder.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
workbench="$here/node_modules/code-server/lib/vscode"
node_prefix=$(dirname "$(dirname "$(readlink -f "$(command -v node)")")")
gyp="$(dirname "$(readlink -f "$(command -v npm)")")/../node_modules/node-gyp/bin/node-gyp.js"

# build FOLDER [VARIABLE...]: with the headers that came with this Node, if they did; node-gyp fetches them otherwise.
build() {
  local folder=$1 headers=()
  shift
  [[ -d $node_prefix/include/node ]] && headers=("--nodedir=$node_prefix")
  (cd "$folder" && node "$gyp" rebuild "${headers[@]}" "$@")
}

(cd "$workbench" && npm install --ignore-scripts --omit=dev --no-fund --no-audit)
argon2="$here/node_modules/argon2"
build "$argon2" --module_name=argon2 "--module_path=$argon2/lib/binding/napi-v3" --napi_build_version=3
for module in @vscode/spdlog native-watchdog node-pty; do
  build "$workbench/node_modules/$module"
done
ln -sfn node_modules "$workbench/node_modules.asar"
mkdir -p "$workbench/node_modules/@vscode/ripgrep/bin"
ln -sf "$(command -v rg)" "$workbench/node_modules/@vscode/ripgrep/bin/rg"
