/** The version of the package, or of the repository. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

export function versionOf(): string {
  for (let folder = import.meta.dirname; ; folder = dirname(folder)) {
    const file = join(folder, 'package.json')
    if (existsSync(file)) return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
    if (folder === dirname(folder)) return 'unknown'
  }
}
