/** The visitor's choices, stored in this browser and shared by its tabs. */
import { computed, effect, signal } from '@preact/signals'

export interface Settings {
  readonly theme: 'system' | 'dark' | 'light'
  /** Blue and orange in place of green and red. */
  readonly colours: 'standard' | 'colour-blind'
  readonly times: 'local' | 'utc'
  readonly notifications: boolean
  readonly sounds: boolean
  /** The last price lights up as it changes, unless the system asks for less motion. */
  readonly priceFlash: boolean
  /** Confirm each order before it is signed. */
  readonly confirmOrders: boolean
  /** Where proofs are compared with the chain: a node, or the connected wallet's own node. Null until the visitor chooses. */
  readonly rpc: string | 'wallet' | null
  readonly favourites: readonly string[]
  /** The session key is locked after this many minutes without input. */
  readonly idleLockMinutes: number
}

const DEFAULTS: Settings = {
  theme: 'system',
  colours: 'standard',
  times: 'local',
  notifications: false,
  sounds: false,
  priceFlash: true,
  confirmOrders: false,
  rpc: null,
  favourites: [],
  idleLockMinutes: 30,
}

const KEY = 'clearbatch.settings'

function stored(): Settings {
  try {
    return { ...DEFAULTS, ...(JSON.parse(localStorage.getItem(KEY) ?? '{}') as Partial<Settings>) }
  } catch {
    return DEFAULTS
  }
}

export const settings = signal<Settings>(stored())

export function change(changes: Partial<Settings>): void {
  settings.value = { ...settings.value, ...changes }
  localStorage.setItem(KEY, JSON.stringify(settings.value))
}

addEventListener('storage', ({ key }) => {
  if (key === KEY) settings.value = stored()
})

const prefersLight = matchMedia('(prefers-color-scheme: light)')
const systemTheme = signal<'dark' | 'light'>(prefersLight.matches ? 'light' : 'dark')
prefersLight.addEventListener('change', ({ matches }) => {
  systemTheme.value = matches ? 'light' : 'dark'
})

export const theme = signal<'dark' | 'light'>(systemTheme.value)

/** Changes whenever colours that were read from the style are outdated. */
export const look = computed(() => `${theme.value} ${settings.value.colours}`)

effect(() => {
  const chosen = settings.value.theme
  theme.value = chosen === 'system' ? systemTheme.value : chosen
  document.documentElement.dataset.theme = theme.value
  document.documentElement.dataset.colours = settings.value.colours
})
