/**
 * Loaded before every test file (`.mocharc.json`): a test fails if an operation of an api in its process answers an error code that the
 * description of the operation does not list. With `ERROR_CODES=<file>`, the codes that operations answer are appended to that file.
 */
import { subscribe } from 'node:diagnostics_channel'
import { appendFileSync } from 'node:fs'
import type { AnsweredError } from '../api/http/errors.ts'

const undeclared = new Set<string>()
const answered = new Set<string>()

subscribe('clearbatch:api:error', (message) => {
  const { operation, code, codes, isRetryUndocumented } = message as AnsweredError
  answered.add(`${operation} ${code}`)
  if (!codes.includes(code)) undeclared.add(`${operation} ${code}`)
  if (isRetryUndocumented) undeclared.add(`${operation} ${code} with Retry-After`)
})

/** The undeclared codes since the last call. */
export function takeUndeclared(): string[] {
  const taken = [...undeclared]
  undeclared.clear()
  return taken
}

export const mochaHooks = {
  afterEach() {
    const taken = takeUndeclared()
    if (taken.length > 0) throw new Error(`codes that the route does not declare: ${taken.join(', ')}`)
  },
  afterAll() {
    const { ERROR_CODES: file } = process.env
    if (file !== undefined) appendFileSync(file, [...answered, ''].join('\n'))
  },
}
