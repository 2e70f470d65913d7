/** The lines of the contracts that differ from an earlier commit. */
import { spawnSync } from 'node:child_process'
import { UsageError } from '../../service/command-line.ts'

const FILE = /^\+\+\+ b\/(.+)$/
const HUNK = /^@@ -\S+ \+(\d+)(?:,(\d+))? @@/

/** By file. Numbers are those of the present files, committed or not. Throws a UsageError if there is no such commit. */
export function linesChangedSince(commit: string): ReadonlyMap<string, ReadonlySet<number>> {
  // A user's settings of git can change prefixes and program.
  const form = ['--unified=0', '--no-ext-diff', '--no-color', '--src-prefix=a/', '--dst-prefix=b/']
  const args = ['diff', ...form, commit, '--', 'contracts']
  const { status, stdout } = spawnSync('git', args, { encoding: 'utf8', maxBuffer: 1e9 })
  if (status !== 0) throw new UsageError(`--since must be a commit of this repository; received ${commit}`)
  const changed = new Map<string, Set<number>>()
  let lines = new Set<number>()
  for (const text of stdout.split('\n')) {
    const [, file] = FILE.exec(text) ?? []
    if (file !== undefined) {
      lines = new Set()
      changed.set(file, lines)
    }
    const [, first, count = '1'] = HUNK.exec(text) ?? []
    for (let at = 0; first !== undefined && at < Number(count); at++) lines.add(Number(first) + at)
  }
  return changed
}
