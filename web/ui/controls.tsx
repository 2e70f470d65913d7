/** Small controls that the screens share. */
import type { ComponentChildren, JSX } from 'preact'
import { useRef } from 'preact/hooks'

export interface TabItem<Id extends string> {
  readonly id: Id
  readonly label: string
  readonly count?: number
}

interface TabsProps<Id extends string> {
  readonly label: string
  readonly items: readonly TabItem<Id>[]
  readonly selected: Id
  readonly onSelect: (id: Id) => void
  readonly children?: ComponentChildren
}

/** A tab list with arrow keys. The caller shows the panel of the selected tab. */
export function Tabs<Id extends string>({ label, items, selected, onSelect, children }: TabsProps<Id>) {
  const list = useRef<HTMLDivElement>(null)
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0
    if (step === 0) return
    const at = items.findIndex(({ id }) => id === selected)
    const next = items[(at + step + items.length) % items.length]
    if (next === undefined) return
    event.preventDefault()
    onSelect(next.id)
    list.current?.querySelector<HTMLElement>(`[data-tab="${next.id}"]`)?.focus()
  }
  return (
    <div class="tabs">
      <div class="tab-list" role="tablist" aria-label={label} ref={list} onKeyDown={onKeyDown}>
        {items.map(({ id, label: text, count }) => (
          <button
            type="button"
            role="tab"
            key={id}
            data-tab={id}
            aria-selected={id === selected}
            tabIndex={id === selected ? 0 : -1}
            onClick={() => onSelect(id)}
          >
            {text}
            {count !== undefined && count > 0 ? <span class="count">{count}</span> : null}
          </button>
        ))}
      </div>
      {children}
    </div>
  )
}

interface ChoiceProps<Value extends string> {
  readonly label: string
  readonly options: readonly { readonly value: Value; readonly text: string }[]
  readonly value: Value
  readonly onChange: (value: Value) => void
  readonly class?: string
}

export function Choice<Value extends string>({
  label,
  options,
  value,
  onChange,
  class: name,
}: ChoiceProps<Value>) {
  return (
    <fieldset class={`segments ${name ?? ''}`} aria-label={label}>
      {options.map(({ value: each, text }) => (
        <button
          type="button"
          key={each}
          data-value={each}
          aria-pressed={each === value}
          onClick={() => onChange(each)}
        >
          {text}
        </button>
      ))}
    </fieldset>
  )
}

export function Stat({
  label,
  children,
  title,
}: {
  label: string
  children: ComponentChildren
  title?: string
}) {
  return (
    <div class="stat" title={title}>
      <span class="stat-label">{label}</span>
      <span class="stat-value">{children}</span>
    </div>
  )
}

interface HeadProps {
  readonly columns: readonly (string | { readonly num: string })[]
  /** A last cell that is no text. */
  readonly children?: ComponentChildren
}

/** The head of a table. `num`: a column of numbers, set to the right. */
export const Head = ({ columns, children }: HeadProps) => (
  <thead>
    <tr>
      {columns.map((column) =>
        typeof column === 'string' ? (
          <th scope="col" key={column}>
            {column}
          </th>
        ) : (
          <th scope="col" class="num" key={column.num}>
            {column.num}
          </th>
        ),
      )}
      {children}
    </tr>
  </thead>
)

type ButtonProps = Omit<JSX.IntrinsicElements['button'], 'class'> & {
  /** Among `small`, `wide`, `primary`. */
  readonly class?: string
}

/** A button that does not send a form. */
export const Button = ({ class: look = '', ...props }: ButtonProps) => (
  <button type="button" class={`button ${look}`} {...props} />
)

export const Empty = ({ children }: { children: ComponentChildren }) => <p class="empty">{children}</p>

interface DialogProps {
  readonly title: string
  readonly onClose: () => void
  readonly children: ComponentChildren
}

/** A modal dialog, and a sheet from below on a phone. The browser's own element keeps the focus inside and closes on Escape. */
export function Dialog({ title, onClose, children }: DialogProps) {
  const open = (element: HTMLDialogElement | null): void => {
    if (element !== null && !element.open) element.showModal()
  }
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the browser closes a dialog on Escape itself
    <dialog
      class="dialog"
      ref={open}
      aria-label={title}
      onClose={onClose}
      onClick={(event) => {
        if (event.target === event.currentTarget) onClose()
      }}
    >
      <div class="dialog-body">
        <header class="dialog-head">
          <h2>{title}</h2>
          <button type="button" class="icon-button" aria-label="Close" onClick={onClose}>
            ✕
          </button>
        </header>
        {children}
      </div>
    </dialog>
  )
}
