/** Times in the visitor's locale, local or UTC. */
import { signal } from '@preact/signals'
import { settings } from './settings.ts'

const zone = (): Intl.DateTimeFormatOptions => (settings.value.times === 'utc' ? { timeZone: 'UTC' } : {})
const cache = new Map<string, Intl.DateTimeFormat>()

function format(options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const all = { ...options, ...zone(), hourCycle: 'h23' } as const
  const key = JSON.stringify(all)
  let found = cache.get(key)
  if (found === undefined) {
    found = new Intl.DateTimeFormat(undefined, all)
    cache.set(key, found)
  }
  return found
}

export const clock = (iso: string | number): string =>
  format({ hour: '2-digit', minute: '2-digit', second: '2-digit' }).format(new Date(iso))

export const dateTime = (iso: string | number | null | undefined): string =>
  iso === null || iso === undefined
    ? '–'
    : format({
        month: 'short',
        day: '2-digit',
        hour: '2-digit',
        minute: '2-digit',
        second: '2-digit',
      }).format(new Date(iso))

/** With the year, for dates that may be far ahead. */
export const longDate = (iso: string | null): string =>
  iso === null
    ? '–'
    : format({ year: 'numeric', month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit' }).format(
        new Date(iso),
      )

/** The present second, for countdowns. */
export const now = signal(Date.now())
setInterval(() => {
  now.value = Date.now()
}, 1_000)

const pad = (value: number): string => String(value).padStart(2, '0')

/** From here on the hours and seconds of a countdown say nothing. */
const FAR_DAYS = 7

export function countdown(iso: string | null | undefined): string {
  if (!iso) return '–'
  const seconds = Math.max(0, Math.floor((Date.parse(iso) - now.value) / 1000))
  const days = Math.floor(seconds / 86_400)
  const clockText = [Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60, seconds % 60]
    .map(pad)
    .join(':')
  if (days >= FAR_DAYS) return `${days} d`
  return days > 0 ? `${days} d ${clockText}` : clockText
}

export function duration(ms: number): string {
  if (ms >= 86_400_000) return `${Math.round(ms / 86_400_000)} d`
  if (ms >= 3_600_000) return `${Math.round(ms / 3_600_000)} h`
  return `${Math.round(ms / 60_000)} min`
}
