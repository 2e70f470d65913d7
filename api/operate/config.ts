/** The operator's view: the password that opens it, and the processes whose metrics it shows. */
import { type Env, environment, rejectVariable } from '../../service/environment.ts'
import { operatorPasswordOf } from '../../service/operator-password.ts'

export interface OperateConfig {
  readonly password: string
  /** Base URLs of internal listeners. */
  readonly targets: readonly string[]
}

/** Bounds the work of one reading. */
const MOST_TARGETS = 64
const EXPECTED =
  'expected URLs of internal listeners without a path, such as http://app1:8081, separated by commas'

/** Null without a password: the api then serves no view for operators. */
export function readOperate(env: Env, process: string): OperateConfig | null {
  const { optional } = environment(env, process)
  const password = operatorPasswordOf(env, process)
  const listed = (optional('OPERATE_TARGETS') ?? '').split(',').filter((text) => text.trim() !== '')
  const targets = [...new Set(listed.map(requireTarget))]
  if (targets.length > MOST_TARGETS)
    rejectVariable('OPERATE_TARGETS', `has ${targets.length} URLs: expected at most ${MOST_TARGETS}`)
  return password === null ? null : { password, targets }
}

/** The value is not repeated if it has credentials: they are a secret. */
function requireTarget(value: string): string {
  const url = URL.parse(value.trim())
  if (url !== null && url.username + url.password !== '')
    return rejectVariable('OPERATE_TARGETS', `contains a URL with credentials: ${EXPECTED}`)
  const isBase = url !== null && ['http:', 'https:'].includes(url.protocol) && url.href === `${url.origin}/`
  return isBase
    ? url.origin
    : rejectVariable('OPERATE_TARGETS', `contains ${JSON.stringify(value)}: ${EXPECTED}`)
}
