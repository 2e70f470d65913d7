/** The screens and their paths. Links are ordinary anchors; a click on one changes the path without loading the page again. */
import { computed, signal } from '@preact/signals'

export type Screen =
  | { readonly name: 'trade'; readonly symbol: string | null }
  | { readonly name: 'batch'; readonly marketId: number; readonly batchId: number }
  | { readonly name: 'markets' | 'portfolio' | 'risk' | 'status' | 'settings' }
  | { readonly name: 'account' | 'signed-in' | 'operate' }
  | { readonly name: 'unknown' }

const path = signal(location.pathname)

const PLAIN = [
  'markets',
  'portfolio',
  'account',
  'risk',
  'status',
  'settings',
  'signed-in',
  'operate',
] as const

export function screenOf(pathname: string): Screen {
  const [, first = '', second, third] = pathname.split('/').map(decodeURIComponent)
  if (first === '' || first === 'trade') return { name: 'trade', symbol: second || null }
  if (first === 'batch' && /^\d+$/.test(second ?? '') && /^\d+$/.test(third ?? ''))
    return { name: 'batch', marketId: Number(second), batchId: Number(third) }
  const plain = PLAIN.find((name) => name === first)
  return plain === undefined ? { name: 'unknown' } : { name: plain }
}

export const screen = computed(() => screenOf(path.value))

export function navigate(to: string, { replace = false } = {}): void {
  if (replace) history.replaceState(null, '', to)
  else history.pushState(null, '', to)
  path.value = location.pathname
  if (!replace) scrollTo(0, 0)
}

addEventListener('popstate', () => {
  path.value = location.pathname
})

document.addEventListener('click', (event) => {
  if (event.defaultPrevented || event.button !== 0) return
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
  const anchor = (event.target as Element | null)?.closest('a')
  if (anchor?.target !== '' || anchor.hasAttribute('download')) return
  if (anchor.origin !== location.origin || screenOf(anchor.pathname).name === 'unknown') return
  if (/^\/(v0|docs|health)(\/|$)/.test(anchor.pathname)) return
  event.preventDefault()
  navigate(anchor.pathname)
})

export const tradePath = (symbol: string): string => `/trade/${encodeURIComponent(symbol)}`
export const batchPath = (marketId: number, batchId: number): string => `/batch/${marketId}/${batchId}`
