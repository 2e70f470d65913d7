/** The load generator, in a process of its own. */
import { fork } from 'node:child_process'
import type { LoadMessage, LoadTask, Measured } from './load.ts'

export interface Generator {
  /** `onStart`: its orders are signed, and the first request goes out. */
  run(task: LoadTask, onStart?: () => void): Promise<Measured>
  stop(): void
}

export function startGenerator(): Generator {
  const child = fork(new URL('./load.ts', import.meta.url).pathname, { serialization: 'advanced' })
  return {
    run: (task, onStart = () => {}) =>
      new Promise((resolve, reject) => {
        const hear = (message: LoadMessage): void => {
          if (message === 'started') onStart()
          else {
            child.off('message', hear).off('exit', fail)
            resolve(message)
          }
        }
        const fail = (): void => reject(new Error('the load generator has ended'))
        child.on('message', hear).once('exit', fail)
        child.send(task)
      }),
    stop: () => child.disconnect(),
  }
}
