/** Python with the packages of the Python client, where it is installed. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'

const FOLDER = resolve('python')
const PACKAGES = 'httpx, websockets'
const CANDIDATES = process.env.PYTHON === undefined ? ['python3', '/usr/bin/python3'] : [process.env.PYTHON]
const CHECK = `import sys, ${PACKAGES}; assert sys.version_info >= (3, 11)`

export const MISSING_PYTHON = `no Python 3.11 with ${PACKAGES}; PYTHON names another interpreter`

/** The first interpreter that has the packages; undefined without one. */
export const findPython = (): string | undefined =>
  CANDIDATES.find((command) => spawnSync(command, ['-c', CHECK], { stdio: 'ignore' }).status === 0)

/** The exit code and the output of `python3 -m unittest …` in the folder of the client. */
export async function runUnittest(
  python: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ readonly code: number | null; readonly output: string }> {
  const child = spawn(python, ['-m', 'unittest', ...args], {
    cwd: FOLDER,
    env: { ...process.env, ...env, PYTHONDONTWRITEBYTECODE: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      output += String(chunk)
    })
  const [code] = await once(child, 'close')
  return { code, output }
}
