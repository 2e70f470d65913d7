/** The keeper's keys: those of its relayer lanes, and those of the signers of price reports in its process. */
import { LANE_NAME, LANE_NAMES } from '../db/relayers.ts'
import { type Env, environment, rejectVariable } from '../service/environment.ts'
import { jsonOf, KEY_FORMS, type KeyReader, readAll, textOfFile } from '../service/keys/key-settings.ts'
import type { KeySource } from '../service/keys/key-source.ts'

/** Keys by lane, the present key first. */
export type RelayerKeys = () => ReadonlyMap<string, readonly KeySource[]>

interface KeyNames {
  readonly of: string
  readonly pattern: RegExp
  readonly valid: string
  readonly example: string
  /** Whether a name may have a list of keys, the present key first. */
  readonly hasFormer: boolean
}

const RELAYERS: KeyNames = {
  of: 'relayer lane',
  pattern: LANE_NAME,
  valid: LANE_NAMES,
  example: '{"m1": "0x…", "faucet": {"remote": "0x…"}}',
  hasFormer: true,
}
const SIGNERS: KeyNames = {
  of: 'signer',
  pattern: /^[\w.-]{1,40}$/,
  valid: 'the name of a signer of PRICES_FILE',
  example: '{"first": "0x…"}',
  hasFormer: false,
}

/** Throws a ConfigError with a line for every wrong entry. It repeats no value: a value is a private key. */
function parseKeys(
  variable: string,
  text: string,
  names: KeyNames,
  reader: KeyReader,
): ReadonlyMap<string, readonly KeySource[]> {
  const parsed = jsonOf(text)
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed))
    return rejectVariable(
      variable,
      `is no JSON object: expected a JSON object of ${names.of} to key, such as ${names.example}`,
    )
  const entries = Object.entries(parsed as Record<string, unknown>)
  const read = ([name, value]: [string, unknown]) =>
    [name, keysOf(variable, name, value, names, reader)] as const
  return new Map(
    readAll<(readonly [string, readonly KeySource[]])[]>(...entries.map((entry) => () => read(entry))),
  )
}

function keysOf(
  variable: string,
  name: string,
  value: unknown,
  names: KeyNames,
  reader: KeyReader,
): readonly KeySource[] {
  if (!names.pattern.test(name))
    rejectVariable(variable, `has the unknown ${names.of} ${JSON.stringify(name)}: expected ${names.valid}`)
  const own: readonly unknown[] = names.hasFormer && Array.isArray(value) ? value : [value]
  if (own.length === 0)
    rejectVariable(
      variable,
      `has no key for ${names.of} ${name}: expected ${KEY_FORMS}, or a list, the present key first`,
    )
  return readAll<KeySource[]>(
    ...own.map((each) => () => reader.keyOf(variable, `has for ${names.of} ${name}`, each)),
  )
}

/** Two lanes with one key would assign its nonces twice. */
function checkDistinct(variable: string, lanes: ReadonlyMap<string, readonly KeySource[]>): void {
  const owners = new Map<string, string>()
  for (const [lane, keys] of lanes) {
    for (const { address } of keys) {
      const other = owners.get(address)
      if (other !== undefined && other !== lane)
        rejectVariable(
          variable,
          `has the same key for the lanes ${other} and ${lane}: expected a key of its own for each lane`,
        )
      owners.set(address, lane)
    }
  }
}

/** With `RELAYER_KEYS_FILE` each call reads the file again. */
export function relayerKeysOf(env: Env, reader: KeyReader): RelayerKeys {
  const { text, optional } = environment(env, 'keeper')
  const file = optional('RELAYER_KEYS_FILE')
  const parse = (variable: string, content: string) => {
    const keys = parseKeys(variable, content, RELAYERS, reader)
    checkDistinct(variable, keys)
    return keys
  }
  if (file === null) {
    const keys = parse('RELAYER_KEYS', text('RELAYER_KEYS'))
    return () => keys
  }
  if (optional('RELAYER_KEYS') !== null)
    rejectVariable('RELAYER_KEYS_FILE', 'is set although RELAYER_KEYS is set: expected one of both')
  const read = () => parse('RELAYER_KEYS_FILE', textOfFile('RELAYER_KEYS_FILE', file))
  read()
  return read
}

/** Keys of the signers in this process, by name. */
export function oracleKeysOf(env: Env, reader: KeyReader): ReadonlyMap<string, KeySource> {
  const { optional } = environment(env, 'keeper')
  const file = optional('ORACLE_KEYS_FILE')
  const own = optional('ORACLE_KEYS')
  if (file !== null && own !== null)
    rejectVariable('ORACLE_KEYS_FILE', 'is set although ORACLE_KEYS is set: expected one of both')
  const keys =
    file === null
      ? parseKeys('ORACLE_KEYS', own ?? '{}', SIGNERS, reader)
      : parseKeys('ORACLE_KEYS_FILE', textOfFile('ORACLE_KEYS_FILE', file), SIGNERS, reader)
  return new Map([...keys].map(([name, [key]]) => [name, key as KeySource]))
}
