// google.protobuf.Struct as a plain object.

export interface StructMessage {
  readonly fields?: { readonly [name: string]: ValueMessage };
}

/** One of the fields is set; `kind` names it in decoded messages. */
export interface ValueMessage {
  readonly kind?: string;
  readonly nullValue?: number;
  readonly numberValue?: number;
  readonly stringValue?: string;
  readonly boolValue?: boolean;
  readonly structValue?: StructMessage;
  readonly listValue?: { readonly values?: readonly ValueMessage[] };
}
