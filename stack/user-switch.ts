/** Runs servers that refuse to run as root, such as Postgres, as an unprivileged user. */
import { type ExecFileException, execFile } from 'node:child_process'
import { chown } from 'node:fs/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Postgres refuses to run as root. As root, its programs are run as the user `nobody`. */
export interface UserSwitch {
  command(program: string, ...args: string[]): [string, ...string[]]
  own(path: string): Promise<void>
}

const NOBODY = ['--reuid=nobody', '--clear-groups']
/** Permits that user to read a repository below a folder that only root may enter, such as /root. */
const REACH_ALL = [
  '--inh-caps=+dac_override',
  '--ambient-caps=+dac_override',
  '--securebits=+no_setuid_fixup',
]

/** `probe`: a command that must run as that user. */
export async function userSwitch(probe: readonly string[]): Promise<UserSwitch> {
  if (process.getuid?.() !== 0) return { command: (...words) => words, own: async () => {} }

  const uid = Number((await run('id', ['-u', 'nobody'])).stdout)
  const gid = Number((await run('id', ['-g', 'nobody'])).stdout)
  const user = [...NOBODY, `--regid=${gid}`]
  const privileges = await firstThatRuns([[...user, ...REACH_ALL], user], [...probe])
  return {
    command: (...words) => ['setpriv', ...privileges, ...words],
    own: (path) => chown(path, uid, gid),
  }
}

async function firstThatRuns(choices: string[][], command: string[]): Promise<string[]> {
  let refusal: ExecFileException | undefined
  for (const choice of choices) {
    try {
      await run('setpriv', [...choice, ...command])
      return choice
    } catch (error) {
      refusal = error as ExecFileException
    }
  }
  throw new Error('Postgres cannot run as root, and setpriv cannot run it as the user nobody', {
    cause: refusal,
  })
}
