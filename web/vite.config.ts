/** Builds the page into hashed files, each also compressed, so that the api sends them without any work. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, gzipSync, constants as zlib } from 'node:zlib'
import { defineConfig, type Plugin } from 'vite'

const here = fileURLToPath(new URL('.', import.meta.url))
const outDir = process.env.PAGE_OUT ?? join(here, 'dist')

/** A quality of 7 takes a twentieth of the time of 11, for 4 % more bytes. */
const BROTLI = { params: { [zlib.BROTLI_PARAM_QUALITY]: 7 } }

function anyOf(...patterns: readonly RegExp[]): RegExp {
  return new RegExp(patterns.map(({ source }) => source).join('|'))
}

/** Modules of both the page and its verifier. Nothing in them may touch the document, which a worker does not have. */
const SHARED = anyOf(
  /node_modules\/@noble\/hashes\/(utils|sha3|_u64)/,
  /domain\/(orders\/order(-hash)?|proof\/wire|units|hex|invariant)\.ts/,
  /client\/(chain\/(rpc|calls)|errors|wait-for|typed-data|bytes|keccak)\.ts/,
  /web\/base\/json-rpc/,
)

/** Few files: each costs a round trip, and compresses worse alone. The entry takes what nearly every screen needs. */
const GROUPS = [
  {
    name: 'shared',
    test: SHARED,
    priority: 4,
  },
  // Without a group of its own, the files of a trader would draw in the client's part of the verifier.
  {
    name: 'verifier',
    test: /web\/proof\/worker|client\/proof\/(?!curves|price-rules)|domain\/(?!units|orders\/order\.ts)/,
    priority: 3,
  },
  {
    name: 'core',
    test: anyOf(
      /web\/((base|feed|ui)\/|app\.tsx|main\.tsx)/,
      /web\/trade\/(header|market-search|history-tables|book|tapes|bottom|screen|ticket-state)/,
      /web\/account\/(live-account|session|vault|wallet)\.ts/,
      /client\/(live|http-session|market-data|decimals|errors|queries|rounding)/,
      /node_modules\/(preact|@preact)|domain\/units|preload-helper/,
    ),
    priority: 2,
  },
  {
    name: 'trading',
    test: /web\/(trading|account\/|screens\/portfolio|trade\/(ticket|order|ongoing|position|use-estimate|csv))|node_modules\/@noble|client\/(?!proof)|domain\/orders/,
    priority: 1,
  },
  { name: 'operate', test: /web\/operate\//, priority: 1 },
  { name: 'screens', test: /web\/(screens|batch|proof)\/|client\/proof\/(curves|price-rules)/, priority: 0 },
]

const compress = (): Plugin => ({
  name: 'compress',
  apply: 'build',
  closeBundle() {
    const assets = join(outDir, 'assets')
    for (const name of readdirSync(assets)) {
      const content = readFileSync(join(assets, name))
      writeFileSync(join(assets, `${name}.gz`), gzipSync(content, { level: 9, memLevel: 7 }))
      writeFileSync(join(assets, `${name}.br`), brotliCompressSync(content, BROTLI))
    }
  },
})

const WORKER = join(here, 'proof/worker.ts')
const WORKER_URL = "new URL('./worker.ts', import.meta.url)"

/** Builds the verifier with the page, so that both load one copy of the modules that they share; vite alone would bundle it a second time. */
const sharedWorker = (): Plugin => {
  let reference = ''
  return {
    name: 'shared-worker',
    apply: 'build',
    enforce: 'pre',
    buildStart() {
      reference = this.emitFile({ type: 'chunk', id: WORKER, name: 'worker' })
    },
    transform(code, id) {
      if (!id.endsWith('web/proof/verify.ts')) return null
      if (!code.includes(WORKER_URL)) throw new Error(`${id} must start the verifier by ${WORKER_URL}`)
      return code.replace(WORKER_URL, `import.meta.ROLLUP_FILE_URL_${reference}`)
    },
  }
}

/** Nothing is left to preload (see `modulePreload`), so each `import()` is called as it is, without vite's helper of 0.7 KB. */
const withoutPreload = (): Plugin => ({
  name: 'without-preload',
  apply: 'build',
  enforce: 'pre',
  load: (id) => (id === '\0vite/preload-helper.js' ? 'export const __vitePreload = (load) => load()' : null),
})

export default defineConfig({
  root: here,
  publicDir: 'public',
  plugins: [sharedWorker(), withoutPreload(), compress()],
  resolve: { alias: { 'fancy-canvas': join(here, 'trade/canvas-size.ts') } },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  worker: { format: 'es' },
  build: {
    outDir,
    emptyOutDir: true,
    target: 'es2023',
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    // A file that is loaded later imports only files that are there already, and the style is one file: nothing is left to preload.
    modulePreload: {
      polyfill: false,
      resolveDependencies: (_, files, { hostType }) => (hostType === 'html' ? files : []),
    },
    cssCodeSplit: false,
    rolldownOptions: { output: { codeSplitting: { groups: GROUPS } } },
  },
  server: { proxy: { '/v0': { target: process.env.API_URL ?? 'http://127.0.0.1:8080', ws: true } } },
})
