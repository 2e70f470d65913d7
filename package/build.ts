/**
 * Builds the npm package `clearbatch` from the sources where they are: JavaScript, declarations, source maps, and the types generated
 * from the descriptions.
 */
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import ts from 'typescript'
import { liveTypes, restTypes } from './generate-types.ts'

const ROOT = resolve(import.meta.dirname, '..')
const ENTRIES = ['history', 'index', 'live', 'proof', 'signing', 'types'] as const
const PEERS = ['@modelcontextprotocol/server', 'secp256k1']
const DEFAULT_SIGNER = '#default-signer'
const DEPENDENCIES = ['@noble/hashes', '@noble/secp256k1', 'ws']

interface Manifest {
  readonly version: string
  readonly license: string
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
}

const readJson = <Content>(path: string): Content =>
  JSON.parse(readFileSync(join(ROOT, path), 'utf8')) as Content

const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2022,
  lib: ['lib.es2024.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts'],
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  types: ['node'],
  typeRoots: [join(ROOT, 'node_modules/@types')],
  rootDir: ROOT,
  declaration: true,
  sourceMap: true,
  inlineSources: true,
  rewriteRelativeImportExtensions: true,
  strict: true,
  exactOptionalPropertyTypes: true,
  verbatimModuleSyntax: true,
  skipLibCheck: true,
}

function compile(sources: readonly string[], outDir: string): void {
  const program = ts.createProgram(sources, { ...OPTIONS, outDir })
  const { diagnostics } = program.emit()
  const errors = [...ts.getPreEmitDiagnostics(program), ...diagnostics]
  if (errors.length === 0) return
  const host = {
    getCanonicalFileName: (name: string) => name,
    getCurrentDirectory: () => ROOT,
    getNewLine: () => '\n',
  }
  throw new Error(`the package does not compile:\n${ts.formatDiagnostics(errors, host)}`)
}

async function writeGeneratedTypes(entries: string): Promise<void> {
  const generated = join(entries, 'generated')
  mkdirSync(generated, { recursive: true })
  const empty = 'export {}\n'
  writeFileSync(join(generated, 'rest.d.ts'), await restTypes(readJson('docs/openapi.json')))
  writeFileSync(join(generated, 'live.d.ts'), await liveTypes(readJson('docs/asyncapi.json')))
  for (const name of ['rest', 'live']) writeFileSync(join(generated, `${name}.js`), empty)
  const types = join(entries, 'types.d.ts')
  const lines = [
    "export type { components as RestComponents, operations as RestOperations, paths as RestPaths } from './generated/rest.js'",
    "export type { components as LiveComponents } from './generated/live.js'",
  ]
  writeFileSync(types, `${readFileSync(types, 'utf8')}${lines.join('\n')}\n`)
}

/** The client imports its default signer by a name that bundlers for browsers resolve to another file. */
function renameDefaultSigner(client: string): void {
  const file = join(client, 'client.js')
  const text = readFileSync(file, 'utf8')
  const renamed = text.replace(/(["'])\.\/signers\/default-signer\.js\1/, `'${DEFAULT_SIGNER}'`)
  if (renamed === text) throw new Error(`${file} does not import ./signers/default-signer.js`)
  writeFileSync(file, renamed)
}

const entryOf = (name: string) => ({
  types: `./dist/package/entries/${name}.d.ts`,
  default: `./dist/package/entries/${name}.js`,
})

function manifest(): object {
  const { version, license, dependencies, devDependencies } = readJson<Manifest>('package.json')
  const rangeOf = (name: string): string => {
    const range = dependencies[name] ?? devDependencies[name]
    if (range === undefined) throw new Error(`package.json of the repository has no range for ${name}`)
    return range
  }
  const rangesOf = (names: readonly string[]) =>
    Object.fromEntries(names.map((name) => [name, rangeOf(name)]))
  return {
    name: 'clearbatch',
    version,
    description:
      'Trade on Clearbatch from a program or a terminal: client, live feed, proofs of batches, and the command clearbatch',
    keywords: ['exchange', 'derivatives', 'batch auction', 'trading', 'perpetuals'],
    license,
    type: 'module',
    engines: { node: '>=20' },
    exports: Object.fromEntries([
      ...ENTRIES.map((name) => [name === 'index' ? '.' : `./${name}`, entryOf(name)]),
      ['./package.json', './package.json'],
    ]),
    // Bundlers for browsers replace the signer of the option `privateKey`.
    imports: {
      [DEFAULT_SIGNER]: {
        browser: './dist/client/signers/default-signer.browser.js',
        default: './dist/client/signers/default-signer.js',
      },
    },
    bin: { clearbatch: 'dist/cli/main.js' },
    sideEffects: ['./dist/cli/main.js'],
    files: ['dist', 'examples', 'CHANGELOG.md'],
    dependencies: rangesOf(DEPENDENCIES),
    peerDependencies: rangesOf(PEERS),
    peerDependenciesMeta: Object.fromEntries(PEERS.map((name) => [name, { optional: true }])),
  }
}

/** Replaces `directory` by the package. */
export async function buildPackage(directory: string): Promise<void> {
  rmSync(directory, { recursive: true, force: true })
  mkdirSync(directory, { recursive: true })
  const entries = ENTRIES.map((name) => join(ROOT, 'package/entries', `${name}.ts`))
  const sources = [
    ...entries,
    join(ROOT, 'client/signers/default-signer.browser.ts'),
    join(ROOT, 'cli/main.ts'),
  ]
  compile(sources, join(directory, 'dist'))
  renameDefaultSigner(join(directory, 'dist/client'))
  await writeGeneratedTypes(join(directory, 'dist/package/entries'))
  writeFileSync(join(directory, 'package.json'), `${JSON.stringify(manifest(), null, 2)}\n`)
  cpSync(join(ROOT, 'LICENSE'), join(directory, 'LICENSE'))
  for (const name of ['README.md', 'CHANGELOG.md', 'examples'])
    cpSync(join(ROOT, 'package', name), join(directory, name), { recursive: true })
}
