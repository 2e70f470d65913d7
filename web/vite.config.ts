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

/** Few files: each costs a round trip, and compresses worse alone. The entry takes what nearly every screen needs. */
const GROUPS = [
  {
    name: 'core',
    test: /web\/(base|feed|ui)\/|web\/trade\/(header|market-search|history-tables|book|tapes|bottom|screen|ticket-state)|web\/account\/(live-account|session|vault|wallet)\.ts|client\/(live|http-session|market-data|decimals|errors|queries|rounding)|node_modules\/(preact|@preact)|domain\/units|preload-helper/,
    priority: 2,
  },
  {
    name: 'trading',
    test: /web\/(trade\/(ticket|order|ongoing|position|use-estimate)|account\/(trader|session-key\.|notifications))|node_modules\/@noble|client\/|domain\/orders/,
    priority: 1,
  },
  { name: 'account', test: /web\/account\//, priority: 0 },
  { name: 'screens', test: /web\/screens\//, priority: 0 },
]

const compress = (): Plugin => ({
  name: 'compress',
  apply: 'build',
  closeBundle() {
    const assets = join(outDir, 'assets')
    for (const name of readdirSync(assets)) {
      const content = readFileSync(join(assets, name))
      writeFileSync(join(assets, `${name}.gz`), gzipSync(content, { level: 9, memLevel: 9 }))
      writeFileSync(join(assets, `${name}.br`), brotliCompressSync(content, BROTLI))
    }
  },
})

export default defineConfig({
  root: here,
  publicDir: 'public',
  plugins: [compress()],
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  worker: { format: 'es' },
  build: {
    outDir,
    emptyOutDir: true,
    target: 'es2023',
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    modulePreload: { polyfill: false },
    rolldownOptions: { output: { codeSplitting: { groups: GROUPS } } },
  },
  server: { proxy: { '/v0': { target: process.env.API_URL ?? 'http://127.0.0.1:8080', ws: true } } },
})
