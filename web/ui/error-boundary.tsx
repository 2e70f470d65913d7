/** Keeps a failure inside its panel, with the message and a way to try again. */

import { Component, type ComponentChildren } from 'preact'
import { Button } from './controls.tsx'

interface Props {
  readonly name: string
  readonly children: ComponentChildren
}

interface State {
  readonly error: Error | null
}

const RELOADED = 'clearbatch.reloaded'

/** After a release the files of the page before are gone: the first failure of that kind loads the page again. */
export function isStaleChunk({ message }: Error): boolean {
  return /dynamically imported module|Importing a module script failed|error loading dynamically/i.test(
    message,
  )
}

export class ErrorBoundary extends Component<Props, State> {
  override state: State = { error: null }

  override componentDidCatch(error: Error): void {
    if (isStaleChunk(error)) reloadOnce()
    this.setState({ error })
  }

  override render({ name, children }: Props, { error }: State) {
    if (error === null) return children
    return (
      <section class="panel failed" role="alert">
        <h2>{name} could not be shown</h2>
        <p class="muted">{error.message}</p>
        <Button onClick={() => this.setState({ error: null })}>Retry</Button>
      </section>
    )
  }
}

/** At most once a minute, so that a file that is really missing does not reload the page forever. */
export function reloadOnce(): boolean {
  const last = Number(sessionStorage.getItem(RELOADED) ?? 0)
  if (Date.now() - last < 60_000) return false
  sessionStorage.setItem(RELOADED, String(Date.now()))
  location.reload()
  return true
}
