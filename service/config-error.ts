/** The error of an invalid environment. */

export type Env = Readonly<Record<string, string | undefined>>

/** The message names the variable, the received value (unless it is secret), and a valid value. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

/** `problem` continues a sentence that starts with the variable's name. */
export function rejectVariable(name: string, problem: string): never {
  throw new ConfigError(`${name} ${problem}`)
}
