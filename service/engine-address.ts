/** Where a process finds the engine, and the key by which it authenticates there. */
import { readFileSync } from 'node:fs'
import { type Env, environment, rejectVariable } from './environment.ts'

export interface EngineAddress {
  /** Addresses of the engine's members: paths of Unix sockets, or `host:port`. */
  readonly members: readonly string[]
  /** Of the role of the process. */
  readonly key: Buffer
}

const MEMBER = /^(\/[^,]+|[^,/:\s]+:\d{1,5}|\[[0-9a-fA-F:]+\]:\d{1,5})$/
const KEY = /^[0-9a-fA-F]{64}$/

/** Null without ENGINE_URL: the process changes the exchange's tables itself. */
export function readEngineAddress(env: Env, processName: string): EngineAddress | null {
  const { optional, text } = environment(env, processName)
  const url = optional('ENGINE_URL')
  if (url === null) return null
  const members = url.split(',').map((member) => member.trim())
  const invalid = members.find((member) => !MEMBER.test(member))
  if (invalid !== undefined)
    rejectVariable(
      'ENGINE_URL',
      `contains ${JSON.stringify(invalid)}: expected paths of Unix sockets or host:port, separated by commas`,
    )
  return { members, key: keyOf(text('ENGINE_KEY_FILE')) }
}

/** An error never repeats the key. */
function keyOf(file: string): Buffer {
  const key = readKey(file)
  return KEY.test(key)
    ? Buffer.from(key, 'hex')
    : rejectVariable('ENGINE_KEY_FILE', 'has an invalid key: expected 64 hexadecimal digits')
}

function readKey(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return rejectVariable('ENGINE_KEY_FILE', `is ${JSON.stringify(file)}, which cannot be read: ${code}`)
  }
}
