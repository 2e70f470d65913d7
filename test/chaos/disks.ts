/** Bounded disks of processes: a tmpfs over each folder, which a fault fills. A janitor removes them, also after a kill of the campaign. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'

const FILLER = 'filler'
const CHUNKS = [1 << 20, 1 << 12, 1]

/**
 * Unmounts in the opposite order once the input closes, and deletes the folder of all. After a kill of the campaign, programs that use the
 * folders still end: it waits for them up to a minute.
 */
const JANITOR = `
read -r _
tries=60
for folder in "$@"; do
  until umount "$folder" || [ "$tries" -eq 0 ]; do tries=$((tries - 1)); sleep 1; done
  [ "$tries" -gt 0 ] || umount -l "$folder"
done
rm -rf "$ROOT"
`

export class Disks {
  /** Why there are none; null if there are. */
  readonly problem: string | null
  readonly #root: string
  readonly #mounted: readonly string[]
  readonly #janitor: ReturnType<typeof spawn>

  private constructor(root: string, mounted: readonly string[], problem: string | null) {
    this.#root = root
    this.#mounted = mounted
    this.problem = problem
    this.#janitor = spawn('/bin/sh', ['-c', JANITOR, 'janitor', ...mounted.toReversed()], {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
      env: { ...process.env, ROOT: root },
    })
    this.#janitor.stdin?.on('error', () => {})
    this.#janitor.unref()
  }

  /** `folders`: with their sizes in megabytes; a folder comes before the folders in it. */
  static mount(root: string, folders: readonly (readonly [path: string, megabytes: number])[]): Disks {
    const mounted: string[] = []
    let problem: string | null = null
    for (const [path, megabytes] of folders) {
      mkdirSync(path, { recursive: true })
      if (problem !== null) continue
      try {
        const options = `size=${megabytes}m,mode=0755`
        execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', path], { stdio: 'pipe' })
        mounted.push(path)
      } catch (error) {
        problem = `no tmpfs can be mounted (${(error as Error).message.trim().split('\n').at(-1)})`
      }
    }
    return new Disks(root, mounted, problem)
  }

  fill(folder: string): void {
    if (!this.#mounted.includes(folder)) throw new Error(`${folder} is no bounded disk`)
    const file = openSync(join(folder, FILLER), 'w')
    try {
      for (const bytes of CHUNKS) fillWith(file, Buffer.alloc(bytes))
    } finally {
      closeSync(file)
    }
  }

  free(folder: string): void {
    rmSync(join(folder, FILLER), { force: true })
  }

  /** Also deletes the folder of all. */
  async remove(): Promise<void> {
    const ended = once(this.#janitor, 'exit')
    this.#janitor.ref()
    this.#janitor.stdin?.end()
    await ended
    rmSync(this.#root, { recursive: true, force: true })
  }
}

function fillWith(file: number, chunk: Buffer): void {
  try {
    while (writeSync(file, chunk) > 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  }
}
