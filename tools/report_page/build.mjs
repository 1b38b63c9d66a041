// Bundles the page into one HTML file: node build.mjs OUTPUT
// The script's hash goes into the page's content security policy, so that nothing else can run in it.
import {createHash} from 'node:crypto';
import {readFileSync, writeFileSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath, pathToFileURL} from 'node:url';
import {createRequire} from 'node:module';

// Packages are those of the current folder: the build installs them outside of the sources.
const modules = join(process.cwd(), 'node_modules');
const require = createRequire(pathToFileURL(join(process.cwd(), 'package.json')));
const {build} = require('esbuild');
const here = dirname(fileURLToPath(import.meta.url));
const source = (file) => readFileSync(join(here, 'src', file), 'utf8');

const bundled = await build({
  entryPoints: [join(here, 'src', 'main.js')],
  bundle: true, minify: true, write: false, format: 'iife', target: 'es2020', charset: 'utf8', legalComments: 'none',
  nodePaths: [modules],
  define: {ECHARTS_VERSION: JSON.stringify(require('echarts/package.json').version), 'process.env.NODE_ENV': '"production"'},
});
// "</script" inside a string would end the element.
const script = bundled.outputFiles[0].text.replaceAll('</script', '<\\/script');
const style = (await build({
  entryPoints: [join(here, 'src', 'page.css')], bundle: true, minify: true, write: false,
})).outputFiles[0].text;
const hash = createHash('sha256').update(script).digest('base64');
const fill = {STYLE: style, SCRIPT: script, SCRIPT_HASH: `sha256-${hash}`};
writeFileSync(process.argv[2], source('page.html').replace(/@(STYLE|SCRIPT|SCRIPT_HASH)@/g, (_, name) => fill[name]));
