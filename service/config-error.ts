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

/** Problems by variable, as `readWhole` has found them so far; null outside of it. */
let problems: Map<string, readonly string[]> | null = null

/** A variable has only the lines of its first error: a placeholder can lead to a second one. */
function note(found: Map<string, readonly string[]>, { message }: ConfigError): void {
  const lines = Object.groupBy(message.split('\n'), (line) => line.split(' ', 1)[0] as string)
  for (const [variable, own = []] of Object.entries(lines)) if (!found.has(variable)) found.set(variable, own)
}

/** Within `readWhole`, a ConfigError is noted and the reading goes on with the placeholder, which no process ever uses. */
export function orNoted<Value>(read: () => Value, placeholder: Value): Value {
  if (problems === null) return read()
  try {
    return read()
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    note(problems, error)
    return placeholder
  }
}

/** Reads a configuration. Throws a ConfigError with a line for each wrong variable, so that an operator corrects all of them at once. */
export function readWhole<Value>(read: () => Value): Value {
  const found = new Map<string, readonly string[]>()
  problems = found
  try {
    const value = read()
    if (found.size === 0) return value
  } catch (error) {
    if (error instanceof ConfigError) note(found, error)
    // Behind a noted problem, another error may be a consequence of its placeholder.
    else if (found.size === 0) throw error
  } finally {
    problems = null
  }
  throw new ConfigError([...found.values()].flat().join('\n'))
}
