#ifndef MENGER_REPLAY_H
#define MENGER_REPLAY_H

/* Open tables of replay (docs/replay.md) for other languages: the C interface of
 * libmenger_replay.so, C99. menger.replay of Python is written with it.
 *
 * A server serves tables to the processes of this host; a client finds it by the path of its
 * socket. Writers append rows of bytes to columns and add items, samplers draw them. An item is
 * columns of rows with a description in front of each: a row of a column of its own, the same for
 * all columns of the item, which says what they are to whoever reads them.
 *
 * A function that returns int32_t gives 0, or an error: 1 more than menger::ErrorCode
 * (base/error.h), or MENGER_REPLAY_MISUSE for a null handle; one that returns a handle gives null
 * then. menger_replay_error tells what the last error of this thread was. Times are nanoseconds.
 * Functions of a server or a client may be called by any thread at any time, those of a writer
 * too, those of a sampler by one thread at a time. Writers and samplers may outlive their client.
 */

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef struct menger_replay_server menger_replay_server;
typedef struct menger_replay_client menger_replay_client;
typedef struct menger_replay_writer menger_replay_writer;
typedef struct menger_replay_sampler menger_replay_sampler;

/* C's names. NOLINTBEGIN(readability-identifier-naming) */
enum menger_replay_result { MENGER_REPLAY_OK = 0, MENGER_REPLAY_MISUSE = 100 };
/* NOLINTEND(readability-identifier-naming) */

/* Valid until the thread's next call. */
const char* menger_replay_error(void);
int32_t menger_replay_error_code(void);

/* What functions below give as text is freed by this. */
void menger_replay_free(char* text);

/* ---- A server
 *
 * `config` is JSON: "socket", a path; "bytes_max" of all rows, 0: three quarters of the memory that
 * this process can have; "folder" in which checkpoints are kept and found again, or ""; "tables", a
 * list of {"name", "sampler", "remover", "items_max", "times_sampled_max", "samples_per_insert",
 * "min_size", "min_diff", "max_diff", "notes", "bytes_max"}, where selectors are {"kind",
 * "exponent"} and a kind is a number of menger::SelectorKind; a bound of the limiter that is left
 * out is none, and bytes_max an equal share of seven eighths of the server's. */
menger_replay_server* menger_replay_server_start(const char* config);
/* Answers what has come within `wait`, and lets all clients go; its tables can be asked still. */
int32_t menger_replay_server_stop(menger_replay_server* server, int64_t wait);
void menger_replay_server_delete(menger_replay_server* server); /* Null: nothing happens. */
/* As menger_replay_client_info. */
int32_t menger_replay_server_info(menger_replay_server* server, char** text);
/* Whether so many items could be inserted (or sampled) now, 0 or 1. */
int32_t menger_replay_server_can_insert(menger_replay_server* server, int32_t table, int64_t count,
                                        int32_t* answer);
int32_t menger_replay_server_can_sample(menger_replay_server* server, int32_t table, int64_t count,
                                        int32_t* answer);

/* ---- A client */

/* Waits so long for the server to be there; calls later wait for `patience` where it has gone. */
menger_replay_client* menger_replay_client_new(const char* socket, int64_t wait, int64_t patience);
void menger_replay_client_delete(menger_replay_client* client); /* Null: nothing happens. */
/* JSON: {"tables": what each is, "server": what it holds and has seen}. */
int32_t menger_replay_client_info(menger_replay_client* client, char** text);
/* Items by their keys; those that are gone are passed over. */
int32_t menger_replay_client_update(menger_replay_client* client, int32_t table,
                                    const uint64_t* keys, const double* priorities, uint64_t count,
                                    uint64_t* found);
int32_t menger_replay_client_delete_items(menger_replay_client* client, int32_t table,
                                          const uint64_t* keys, uint64_t count, uint64_t* found);
int32_t menger_replay_client_reset(menger_replay_client* client, int32_t table);
int32_t menger_replay_client_checkpoint(menger_replay_client* client, int64_t wait);

/* ---- A writer */

/* Consecutive rows of a column. */
typedef struct {
  int64_t first;
  uint32_t count;
  uint32_t column;
} menger_replay_range;

/* Keeps up to bytes_max of rows and pending_max items that are not known to be inserted; 0: 1 GiB,
 * a million. */
menger_replay_writer* menger_replay_writer_new(menger_replay_client* client, uint64_t bytes_max,
                                               int32_t pending_max);
/* What is not known to be inserted may be lost. Null: nothing happens. */
void menger_replay_writer_delete(menger_replay_writer* writer);
int32_t menger_replay_writer_column(menger_replay_writer* writer, int64_t row_bytes,
                                    int32_t chunk_rows, int32_t history, uint32_t* column);
/* Copies a row to the end of each of `count` columns; `rows` are their numbers. */
int32_t menger_replay_writer_append(menger_replay_writer* writer, uint32_t count,
                                    const uint32_t* columns, const void* const* data,
                                    const uint64_t* bytes, int64_t* rows);
/* Copies a row of the history back. */
int32_t menger_replay_writer_read(menger_replay_writer* writer, uint32_t column, int64_t row,
                                  void* to, uint64_t bytes);
/* An item, to be inserted as soon as its table takes it. */
int32_t menger_replay_writer_add(menger_replay_writer* writer, int32_t table, double priority,
                                 const menger_replay_range* ranges, uint32_t count);
/* Until no more than `left` items are not known to be inserted. */
int32_t menger_replay_writer_await(menger_replay_writer* writer, int32_t left, int64_t wait);
int32_t menger_replay_writer_pending(menger_replay_writer* writer); /* Or -1. */

/* ---- A sampler */

typedef struct {
  uint64_t key;
  double probability;
  double priority;
  int64_t times_sampled;
  int64_t table_items;     /* When it was drawn. */
  const void* description; /* Of its columns. */
  uint64_t description_bytes;
  uint32_t columns_begin; /* Its columns are these of the draw's. */
  uint32_t columns;
} menger_replay_item;

typedef struct {
  uint64_t rows;
  uint64_t row_bytes; /* Of its largest row. */
  uint32_t is_even;   /* All rows have as many. */
  uint32_t unused;
} menger_replay_column;

menger_replay_sampler* menger_replay_sampler_new(menger_replay_client* client, int32_t table);
void menger_replay_sampler_delete(menger_replay_sampler* sampler); /* Null: nothing happens. */
/* Draws up to `count` items, at least one, and gives back those that were drawn before. Arrays are
 * valid until the next draw or release. */
int32_t menger_replay_sampler_draw(menger_replay_sampler* sampler, int32_t count, int64_t wait,
                                   const menger_replay_item** items, uint32_t* item_count,
                                   const menger_replay_column** columns);
/* Copies all rows of a column of the draw, oldest first, each to `row_bytes` bytes of its own:
 * zeros follow those that are shorter. */
int32_t menger_replay_sampler_copy(menger_replay_sampler* sampler, uint32_t column, void* to,
                                   uint64_t bytes);
void menger_replay_sampler_release(menger_replay_sampler* sampler);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#endif
