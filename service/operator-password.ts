/** The operator's password: it opens the queue page of the keeper and the operator's view of the api. */
import { type Env, environment, rejectVariable } from './environment.ts'
import { equalText } from './equal-text.ts'
import { textOfFile } from './keys/key-settings.ts'

const LEAST_CHARACTERS = 16
const BASIC = /^Basic ([\w+/=-]+)$/i

/** Null: the process serves no page for operators. An error never repeats the password. */
export function operatorPasswordOf(env: Env, processName: string): string | null {
  const { optional } = environment(env, processName)
  const file = optional('QUEUE_PAGE_PASSWORD_FILE')
  const password =
    file === null ? optional('QUEUE_PAGE_PASSWORD') : textOfFile('QUEUE_PAGE_PASSWORD_FILE', file).trim()
  if (password === null || password.length >= LEAST_CHARACTERS) return password
  return rejectVariable(
    file === null ? 'QUEUE_PAGE_PASSWORD' : 'QUEUE_PAGE_PASSWORD_FILE',
    `has a password that is too short: expected at least ${LEAST_CHARACTERS} characters`,
  )
}

/** The password of HTTP basic authentication, with any user name. Empty without one. */
function passwordIn(authorization: string | undefined): string {
  const [, encoded = ''] = BASIC.exec(authorization ?? '') ?? []
  const credentials = Buffer.from(encoded, 'base64').toString()
  return credentials.slice(credentials.indexOf(':') + 1)
}

/** Whether the Authorization header presents the operator's password. */
export const isOperator = (authorization: string | undefined, password: string): boolean =>
  equalText(passwordIn(authorization), password)
