/** Repeats a read while a screen is open. */
import { useEffect, useState } from 'preact/hooks'

export interface Read<Value> {
  readonly value: Value | null
  readonly error: string | null
  readonly again: () => void
}

/**
 * `key` names the read; a different key starts again without a value. A failed read keeps the last value and shows the
 * error.
 */
export function useRead<Value>(key: string, read: () => Promise<Value>, everyMs: number | null): Read<Value> {
  const [state, setState] = useState<Omit<Read<Value>, 'again'>>({ value: null, error: null })
  const [round, setRound] = useState(0)
  useEffect(() => {
    let isOpen = true
    const run = (): void => {
      read().then(
        (value) => {
          if (isOpen) setState({ value, error: null })
        },
        (error: Error) => {
          if (isOpen) setState((before) => ({ ...before, error: error.message }))
        },
      )
    }
    run()
    const timer = everyMs === null ? undefined : setInterval(() => !document.hidden && run(), everyMs)
    return () => {
      isOpen = false
      clearInterval(timer)
    }
  }, [key, round])
  return { ...state, again: () => setRound((before) => before + 1) }
}
