/** Every variable of the processes, read from the sources that check it: the lists of `docs/operate/settings.md`. */
import { readFileSync } from 'node:fs'
import ts from 'typescript'
import { LOOPBACK } from '../../service/environment.ts'
import { MEANINGS } from './setting-meanings.ts'

export interface Setting {
  readonly variable: string
  readonly fallback: string
  readonly valid: string
  readonly meaning: string
}

export interface ProcessSettings {
  readonly process: string
  readonly settings: readonly Setting[]
}

const ENGINE_CLIENT = 'keeper/engine/link/access.ts'
const KEYS = 'service/keys/key-settings.ts'
const OPERATOR = 'service/operator-password.ts'
const TRACES = 'service/trace-settings.ts'

/** The files that read the variables of each process. */
const FILES: Readonly<Record<string, readonly string[]>> = {
  api: ['api/config.ts', 'api/page/config.ts', 'api/operate/config.ts', OPERATOR, ENGINE_CLIENT, TRACES],
  engine: ['keeper/engine/config.ts', TRACES],
  keeper: ['keeper/config.ts', 'keeper/key-config.ts', KEYS, OPERATOR, ENGINE_CLIENT, TRACES],
  indexer: ['indexer/config.ts', ENGINE_CLIENT, TRACES],
  'oracle signer': ['signer/config.ts', KEYS],
  backstop: ['backstop/config.ts', KEYS],
}

/** Values that each reader of `service/environment.ts` accepts. */
const VALID: Readonly<Record<string, string>> = {
  count: 'whole number',
  millionths: 'whole number, millionths',
  text: 'text',
  optional: 'text',
  url: 'URL',
  http: 'http or https URL',
  database: 'postgres URL',
  amount: 'wei',
  flag: 'on or off',
  address: 'address',
  port: 'port',
}

/** Defaults that are no literals. */
const FALLBACKS: Readonly<Record<string, string>> = {
  'rpcWsUrl === null ? 100 : 500': '100',
  UPDATE_INTERVAL: '900000',
  'Math.max(1, availableParallelism() - 1)': 'processors − 1',
  'longestWaitMs + 20_000': 'longest wait + 20000',
  'new URL(publicUrl).host': 'host of PUBLIC_URL',
  '64 * 1024': '65536',
  '1024 * 1024': '1048576',
  '24 * 365': '8760',
  '10_000n * ETHER': '10000 × 10^18',
  'ETHER / 10n': '10^17',
  '100n * GWEI': '10^11',
  confirmations: 'CHAIN_CONFIRMATIONS',
}

const OPTIONAL = new Set(['optional', 'url'])

function textOf(node: ts.Expression | undefined): string | null {
  if (node === undefined) return null
  if (ts.isStringLiteral(node)) return node.text
  const text = node.getText()
  if (text === 'undefined') return null
  if (text === 'true') return 'on'
  if (text === 'false') return 'off'
  if (/^[\d_]+n?$/.test(text)) return text.replaceAll(/[_n]/g, '')
  const known = FALLBACKS[text]
  if (known === undefined) throw new Error(`name the default ${text} in FALLBACKS`)
  return known
}

interface Call {
  readonly reader: string
  readonly variable: string
  readonly more: readonly ts.Expression[]
}

const DATABASE_FILES = [
  'DATABASE_CA_FILE',
  'DATABASE_CERT_FILE',
  'DATABASE_KEY_FILE',
  'DATABASE_PASSWORD_FILE',
]
const REDIS = ['REDIS_URL', 'REDIS_CA_FILE', 'REDIS_CERT_FILE', 'REDIS_KEY_FILE']
const ENGINE_TLS = ['ENGINE_TLS_CA_FILE', 'ENGINE_TLS_CERT_FILE', 'ENGINE_TLS_KEY_FILE']
const optional = (variable: string): Call => ({ reader: 'optional', variable, more: [] })

/** Host, port and default port. */
function listenerCalls([host, port, defaultPort]: readonly ts.Expression[]): readonly Call[] {
  return [
    { reader: 'text', variable: textOf(host) as string, more: [ts.factory.createStringLiteral(LOOPBACK)] },
    { reader: 'port', variable: textOf(port) as string, more: [defaultPort as ts.Expression] },
  ]
}

function callsIn(file: string): readonly Call[] {
  const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true)
  const found: Call[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node)) {
      const { expression, arguments: args } = node
      const reader = ts.isPropertyAccessExpression(expression) ? expression.name.text : expression.getText()
      const [first, ...more] = args
      if (reader === 'listener') found.push(...listenerCalls(args))
      const isRead = reader in VALID && first !== undefined && ts.isStringLiteral(first)
      if (isRead) found.push({ reader, variable: first.text, more })
      if (reader === 'database') {
        found.push({ reader, variable: 'DATABASE_URL', more: [] })
        found.push(...DATABASE_FILES.map(optional))
      }
      if (reader === 'redisUrlOf') found.push(...REDIS.map(optional))
      if (reader === 'linkTls') found.push(...ENGINE_TLS.map(optional))
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

function settingOf(process: string, calls: readonly Call[]): Setting {
  // A variable that is read twice is optional if one of the reads is.
  const exact = calls.find(({ reader }) => !OPTIONAL.has(reader)) ?? (calls[0] as Call)
  const { reader, variable, more } = exact
  const meaning = MEANINGS[`${process} ${variable}`] ?? MEANINGS[variable]
  if (meaning === undefined) throw new Error(`name the meaning of ${variable} in setting-meanings.ts`)
  const fallback = reader === 'url' ? null : textOf(more[0])
  const bounds = reader === 'count' || reader === 'millionths' ? more.slice(1).map(textOf) : []
  const range =
    bounds.length === 2
      ? ` from ${bounds[0]} to ${bounds[1]}`
      : bounds.map((least) => ` from ${least}`).join('')
  const isOptional = calls.some((call) => OPTIONAL.has(call.reader))
  return {
    variable,
    fallback: fallback ?? (isOptional ? '–' : 'required'),
    valid: `${VALID[reader]}${range}`,
    meaning,
  }
}

export const processSettings = (): readonly ProcessSettings[] =>
  Object.entries(FILES).map(([process, files]) => ({
    process,
    settings: [...Map.groupBy(files.flatMap(callsIn), ({ variable }) => variable)]
      .map(([, calls]) => settingOf(process, calls))
      .toSorted((a, b) => a.variable.localeCompare(b.variable)),
  }))

/** Kinds of values that name, default or meaning show already. */
const PLAIN = new Set([
  'text',
  'whole number',
  'address',
  'port',
  'postgres URL',
  'http or https URL',
  'on or off',
])

/** Default, valid values where they are narrower than the meaning shows, and meaning. */
function factsOf({ fallback, valid, meaning }: Setting): string {
  const range = valid.replace(/^whole number,? ?/, '').replace(/^from [01]$/, '')
  const facts = [
    ...(fallback === '–' ? [] : [fallback]),
    ...(PLAIN.has(valid) || range === '' ? [] : [range]),
  ]
  return `${facts.length === 0 ? '' : ` (${facts.join('; ')})`}: ${meaning}`
}

/** Lines of the list, in the order of the variables; variables with equal facts share a line. */
const linesOf = (settings: readonly Setting[]): string[] =>
  [...Map.groupBy(settings, factsOf)].map(
    ([facts, same]) => `- ${same.map(({ variable }) => `\`${variable}\``).join(', ')}${facts}`,
  )

const keyOf = (setting: Setting): string => `${setting.variable}${factsOf(setting)}`

/** Settings that several processes read alike, with the names of these processes. */
function sharedSettings(): readonly { readonly setting: Setting; readonly processes: readonly string[] }[] {
  const uses = processSettings().flatMap(({ process, settings }) =>
    settings.map((setting) => ({ process, setting })),
  )
  return [...Map.groupBy(uses, ({ setting }) => keyOf(setting)).values()]
    .filter((same) => same.length > 1)
    .map((same) => ({
      setting: (same[0] as (typeof uses)[number]).setting,
      processes: same.map(({ process }) => process),
    }))
    .toSorted((a, b) => a.setting.variable.localeCompare(b.setting.variable))
}

/** The text of `docs/operate/settings.md`. */
export function settingsText(): string {
  const shared = sharedSettings()
  const isShared = new Set(shared.map(({ setting }) => keyOf(setting)))
  const groups = [...Map.groupBy(shared, ({ processes }) => processes.join(', '))]
    .map(([processes, same]) => ({ processes, lines: linesOf(same.map(({ setting }) => setting)) }))
    .toSorted((a, b) => a.processes.localeCompare(b.processes))
  const own = processSettings().map(({ process, settings }) => ({
    processes: process,
    lines: linesOf(settings.filter((setting) => !isShared.has(keyOf(setting)))),
  }))
  const sections = [...groups, ...own].map(
    ({ processes, lines }) => `## ${processes}\n\n${lines.join('\n')}\n`,
  )
  return `# Settings

Generated by \`npm run describe\` from the sources that check each variable. \`service/README.md\` has the variables that every process reads. Behind a name is its default, then
the valid range. Without a default a variable is optional. \`_MS\` is milliseconds.
A \`RATE_LIMIT\` counts per second and credential, unless it names an address. Invalid values end the process at its start, with a line for each.

${sections.join('\n')}`
}
