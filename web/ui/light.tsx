/** A state in colour, sign and words. */
export function Light({ ok, text }: { ok: boolean; text: string }) {
  return (
    <span class={ok ? 'up' : 'down'}>
      {ok ? '●' : '▲'} {text}
    </span>
  )
}
