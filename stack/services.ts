/** Keeps the database and the chain running: restarts them on the same port after an unexpected end. */
import type { Child } from './child.ts'
import { StackError } from './options.ts'

export interface Service {
  readonly url: string
  /** Sends a signal to the whole process group. After SIGSTOP the service does not respond until SIGCONT. */
  signal(signal: NodeJS.Signals): void
  /** Stops it in order and starts it again. */
  restart(): Promise<void>
  stop(): Promise<void>
  /** Ends it by SIGKILL and leaves it so until `restart`. */
  kill(): Promise<void>
}

type Running = Child & { readonly url: string }

const PAUSE_MS = 500
const TRIES = 10
const FIRST_TRIES = 4

/** Starts always on the port of the first success. Before that each attempt has a port of its own: another program may take the one that was free. */
export function onOnePort(
  choose: () => Promise<number>,
  start: (port: number) => Promise<Running>,
): () => Promise<Running> {
  let port: number | null = null
  return async () => {
    const chosen = port ?? (await choose())
    const running = await start(chosen)
    port = chosen
    return running
  }
}

/** Retries the first start: a process of an earlier stack may still be ending. */
async function firstStart(start: () => Promise<Running>): Promise<Running> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start()
    } catch (error) {
      if (attempt === FIRST_TRIES || error instanceof StackError) throw error
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS * attempt))
    }
  }
}

export async function keepRunning(
  name: string,
  start: () => Promise<Running>,
  report: (line: string) => void,
): Promise<Service> {
  let current = await firstStart(start)
  let wanted = true
  let restarting: Promise<void> | null = null

  const watch = (): void => {
    const watched = current
    void watched.exited.then(async () => {
      if (!wanted || watched !== current) return
      report(`${name} ended unexpectedly; restarting it`)
      restarting = startAgain()
      await restarting
    })
  }

  const startAgain = async (): Promise<void> => {
    for (let attempt = 1; wanted; attempt++) {
      try {
        current = await start()
        watch()
        return
      } catch (error) {
        report(`failed to start ${name}, attempt ${attempt} of ${TRIES}: ${(error as Error).message}`)
        if (attempt === TRIES) return
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS * attempt))
      }
    }
  }

  watch()
  return {
    url: current.url,
    signal: (signal) => process.kill(-current.group, signal),
    async restart() {
      wanted = false
      await current.stop()
      wanted = true
      await startAgain()
    },
    async kill() {
      wanted = false
      await restarting
      process.kill(-current.group, 'SIGKILL')
      await current.exited
    },
    async stop() {
      wanted = false
      await restarting
      await current.stop()
    },
  }
}
