/** Components whose code is loaded when they are first shown. */
import { type ComponentType, h } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { reloadOnce } from './error-boundary.tsx'

type Loaded<Props> = { readonly component: ComponentType<Props> } | { readonly error: Error } | null

/** A module of its own for all parts of a trader: each further module that is imported so would be one more file. */
export const loadTrading = async () => (await import('../trading.ts')).trading

export function lazy<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let cached: ComponentType<Props> | null = null
  return (props: Props) => {
    const [loaded, setLoaded] = useState<Loaded<Props>>(cached === null ? null : { component: cached })
    useEffect(() => {
      if (cached !== null) return
      load().then(
        (component) => {
          cached = component
          setLoaded({ component })
        },
        (error: Error) => {
          if (!reloadOnce()) setLoaded({ error })
        },
      )
    }, [])
    if (loaded === null) return <div class="loading" role="status" aria-label="Loading" />
    if ('error' in loaded) throw loaded.error
    return h(loaded.component, props as never)
  }
}
