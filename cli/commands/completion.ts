/** `completion`: scripts for shells. They ask `clearbatch complete` for the words, so that they follow the table of commands. */
import type { Context } from '../context.ts'
import { CommandError, EXIT } from '../failure.ts'

const BASH = `_clearbatch() {
  local IFS=$'\\n'
  COMPREPLY=($(clearbatch complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _clearbatch clearbatch
`
const ZSH = `#compdef clearbatch
_clearbatch() {
  local -a replies
  replies=("\${(@f)$(clearbatch complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "\${replies[1]}" ]]; then compadd -a replies; else _files; fi
}
compdef _clearbatch clearbatch
`
/** Fish evaluates every rule by itself: the answer is kept for the second one, which offers files where the table has nothing. */
const FISH = `function __clearbatch_replies
    set -l words (commandline -opc)[2..-1] (commandline -ct)
    set -l asked (string join ' ' -- $words)
    if test "$asked" != "$__clearbatch_asked"
        set -g __clearbatch_asked $asked
        set -g __clearbatch_found (clearbatch complete -- $words 2>/dev/null)
    end
    string join \\n -- $__clearbatch_found
end
complete -c clearbatch -f -a '(__clearbatch_replies)'
complete -c clearbatch -n 'not __clearbatch_replies >/dev/null' -F
`
const SCRIPTS: Readonly<Record<string, string>> = { bash: BASH, zsh: ZSH, fish: FISH }

export async function completion(
  _context: Context,
  { positionals: [shell = ''] }: { readonly positionals: readonly string[] },
) {
  const script = SCRIPTS[shell]
  if (script === undefined)
    throw new CommandError(
      `expected one of ${Object.keys(SCRIPTS).join(', ')}; received ${shell}`,
      EXIT.usage,
    )
  return script
}
