/**
 * A copy of the sources as a later version: one expanding migration, one contract step, a row of a new version and another layout of the state.
 */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { STATE_VERSION } from '../../../domain/exchange/state-version.ts'

const REPOSITORY = fileURLToPath(new URL('../../..', import.meta.url))
/** They hold no module that a process or the command imports. */
const LEFT_OUT = new Set([
  'node_modules',
  'artifacts',
  'cache',
  'test',
  'docs',
  'contracts',
  'web',
  'python',
  'ccxt',
])

export const EXPANSION = '9001-next'
export const CONTRACTION = '9002-contract-9001-next'

const MIGRATIONS: Readonly<Record<string, string>> = {
  [EXPANSION]: 'alter table orders add column next_note text; alter table markets add column next_note text',
  [CONTRACTION]: 'alter table orders alter column next_note set default 0',
}

type Change = readonly [from: string, to: string]

const lines = (lineOf: (name: string, at: number) => string): string =>
  Object.keys(MIGRATIONS)
    .map((name, at) => `${lineOf(name, at)}\n`)
    .join('')

const CHANGES: Readonly<Record<string, readonly Change[]>> = {
  'db/migrator.ts': [
    [
      'export const MIGRATIONS',
      `${lines((name, at) => `import * as later${at} from './migrations/${name}.ts'`)}export const MIGRATIONS`,
    ],
    ['\n}\n', `\n${lines((name, at) => `  '${name}': later${at},`)}}\n`],
  ],
  'domain/journal/row-versions.ts': [['order_placed: 4', 'order_placed: 5']],
  // Orders with a builder are what only the later version writes.
  'domain/exchange/decide/orders/place.ts': [['? withoutBuilder : 4', '? withoutBuilder : 5']],
  'domain/exchange/state-version.ts': [
    [`STATE_VERSION = ${STATE_VERSION}`, `STATE_VERSION = ${STATE_VERSION + 1}`],
  ],
}

export interface NextVersion {
  /** Its files are those of the repository, as far as a process needs them. */
  readonly folder: string
  remove(): void
}

export function createNextVersion(): NextVersion {
  const folder = mkdtempSync(join(tmpdir(), 'clearbatch-next-'))
  for (const name of readdirSync(REPOSITORY))
    if (!LEFT_OUT.has(name) && !name.startsWith('.'))
      cpSync(join(REPOSITORY, name), join(folder, name), { recursive: true })
  symlinkSync(join(REPOSITORY, 'node_modules'), join(folder, 'node_modules'))
  for (const [name, statement] of Object.entries(MIGRATIONS))
    writeFileSync(
      join(folder, 'db/migrations', `${name}.ts`),
      `import { sql } from 'kysely'\nexport const up = async (db) => {\n  for (const one of ${JSON.stringify(
        statement.split('; '),
      )}) await sql.raw(one).execute(db)\n}\n`,
    )
  for (const [file, changes] of Object.entries(CHANGES))
    for (const change of changes) replaceOnce(join(folder, file), change)
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

function replaceOnce(file: string, [from, to]: Change): void {
  const text = readFileSync(file, 'utf8')
  if (!text.includes(from)) throw new Error(`${file} has no ${JSON.stringify(from)} to change`)
  writeFileSync(file, text.replace(from, to))
}
