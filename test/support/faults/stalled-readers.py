"""python3 stalled-readers.py PORT COUNT CODING

COUNT clients that ask for a stream, take its first bytes and no more. Their own kernel buffers are small, which Node
cannot ask for: with both ends on one machine thousands of the usual size fill what its kernel has for TCP, and it cuts
connections itself. Says "stalled" when all of them stand, and ends when its standard input does.
"""

import selectors
import socket
import sys

port, count, coding = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
AT_ONCE = 50
REQUEST = f"GET /items/stream HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: {coding}\r\n\r\n".encode()


def ask():
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
    client.connect(("127.0.0.1", port))
    client.sendall(REQUEST)
    return client


stalled, waiting = [], selectors.DefaultSelector()
while len(stalled) < count:
    while len(waiting.get_map()) < min(AT_ONCE, count - len(stalled)):
        waiting.register(ask(), selectors.EVENT_READ)
    for key, _ in waiting.select():
        first = key.fileobj.recv(256)
        assert first.startswith(b"HTTP/1.1 200 "), first
        waiting.unregister(key.fileobj)
        stalled.append(key.fileobj)

print("stalled", flush=True)
sys.stdin.read()
