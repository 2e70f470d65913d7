/** Why something on a screen is missing or old. */
import { Button } from './controls.tsx'
import type { Read } from './use-read.ts'

export function ReadError({ read }: { read: Read<unknown> }) {
  if (read.error === null) return null
  return (
    <p class="note bad" role="alert">
      {read.error} {read.value === null ? '' : 'What is shown may be old.'}{' '}
      <Button class="small" onClick={read.again}>
        Retry
      </Button>
    </p>
  )
}
