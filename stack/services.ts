/** The database and the chain: started, watched, and started again on the same port when they end unasked. */
import type { Child } from './child.ts'
import { StackError } from './options.ts'

export interface Service {
  readonly url: string
  /** To all of its processes; a stopped one answers nobody until it is continued. */
  signal(signal: NodeJS.Signals): void
  /** Ends it in order and starts it again. */
  restart(): Promise<void>
  stop(): Promise<void>
}

type Running = Child & { readonly url: string }

const PAUSE_MS = 500
const TRIES = 10
const FIRST_TRIES = 4

/** What an earlier stack left behind may need a moment to go. */
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
      report(`${name} ended; starting it again`)
      restarting = again()
      await restarting
    })
  }

  const again = async (): Promise<void> => {
    for (let attempt = 1; wanted; attempt++) {
      try {
        current = await start()
        watch()
        return
      } catch (error) {
        report(`${name} does not start: ${(error as Error).message}`)
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
      await again()
    },
    async stop() {
      wanted = false
      await restarting
      await current.stop()
    },
  }
}
