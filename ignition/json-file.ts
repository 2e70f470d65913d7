/** Reads a JSON file that an option of a task names. */
import { readFileSync } from 'node:fs'

/** Throws an error that names the option, what was received, and an example. */
export function readJsonFile(path: string, option: string, example: string): unknown {
  if (path === '') throw new Error(`${option} must name a JSON file, such as ${example}; received nothing`)
  let content: string
  try {
    content = readFileSync(path, 'utf8')
  } catch (error) {
    const { code } = error as { code?: string }
    throw new Error(`${option} must name a JSON file, such as ${example}; cannot read ${path} (${code})`)
  }
  try {
    return JSON.parse(content)
  } catch (error) {
    throw new Error(`${path}: expected JSON: ${(error as Error).message}`)
  }
}
