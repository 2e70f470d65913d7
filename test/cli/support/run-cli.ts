/** Runs `clearbatch` in this process and keeps what it prints. */
import { Readable, Writable } from 'node:stream'
import { run } from '../../../cli/run.ts'
import type { TestScreen } from './test-screen.ts'

export interface CliResult {
  readonly code: number
  readonly out: string
  readonly err: string
}

export interface CliOptions {
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly stopping?: AbortSignal
  /** Receives everything printed to standard output so far, after each write. */
  readonly onOutput?: (text: string) => void
  /** In place of a pipe for standard output. */
  readonly screen?: TestScreen
}

class Captured extends Writable {
  text = ''
  readonly #onText: ((text: string) => void) | undefined

  constructor(onText?: (text: string) => void) {
    super()
    this.#onText = onText
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString()
    this.#onText?.(this.text)
    done()
  }
}

/** Commands of operators print to the console: it is captured too. */
export async function runCli(
  args: readonly string[],
  { env = {}, stopping, onOutput, screen }: CliOptions = {},
): Promise<CliResult> {
  const [stdout, stderr] = [new Captured(onOutput), new Captured()]
  const { log, error } = console
  console.log = (line: string) => stdout.write(`${line}\n`)
  console.error = (line: string) => stderr.write(`${line}\n`)
  try {
    const code = await run(args, {
      env,
      streams: { stdin: Readable.from([]), stdout: screen ?? stdout, stderr },
      stopping: stopping ?? new AbortController().signal,
    })
    return { code, out: stdout.text, err: stderr.text }
  } finally {
    Object.assign(console, { log, error })
  }
}
