/** `read`: public or own data. `trade`: places or cancels orders. `account`: moves money or credentials. `tool`: neither. */
export type CommandKind = 'read' | 'trade' | 'account' | 'tool'
