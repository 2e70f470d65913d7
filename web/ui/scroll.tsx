/** A region that scrolls. It can have the focus, so that the arrow keys scroll it. */
import type { ComponentChildren } from 'preact'

interface ScrollProps {
  readonly label: string
  readonly children: ComponentChildren
  readonly testId?: string
  readonly class?: string
}

export function Scroll({ label, children, testId, class: name = 'scroll' }: ScrollProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <section class={name} tabIndex={0} aria-label={`${label}, scrollable`} data-testid={testId}>
      {children}
    </section>
  )
}
