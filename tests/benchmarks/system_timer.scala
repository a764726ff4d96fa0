// Kafka's own wheel as its coordinator uses it: file timers, move each to a later deadline, and fire them all.
import java.util.concurrent.atomic.AtomicInteger
import org.apache.kafka.server.util.timer.{SystemTimer, TimerTask}

val count = args(0).toInt
val fired = new AtomicInteger
class Silence(delayMs: Long) extends TimerTask(delayMs) { override def run(): Unit = fired.incrementAndGet() }

def seconds(body: => Unit): Double = {
  val begun = System.nanoTime
  body
  (System.nanoTime - begun) / 1e9
}

def round(sessionMs: Long): (Double, Double, Double) = {
  fired.set(0)
  val timer = new SystemTimer("bench")
  val random = new java.util.Random(7)
  val spread = Array.fill(count)(random.nextInt(3000).toLong)
  val tasks = new Array[Silence](count)
  def file(extraMs: Long): Unit = {
    var at = 0
    while (at < count) {
      tasks(at) = new Silence(sessionMs + extraMs + spread(at))
      timer.add(tasks(at))
      at += 1
    }
  }
  val filed = seconds(file(0))
  // A heartbeat cancels the member's timer and adds another, as the coordinator does.
  val moved = seconds { var at = 0; while (at < count) { tasks(at).cancel(); at += 1 }; file(0) }
  // All deadlines are over before the clock is moved: what is timed is the work, not the wait.
  Thread.sleep(sessionMs + 3500)
  val spent = seconds { while (fired.get < count) timer.advanceClock(0) }
  timer.close()
  (count / filed, count / moved, count / spent)
}

round(100)
val (file, move, fire) = round(2000 + count / 500)
println(s"""{"file": ${file.round}, "move": ${move.round}, "fire": ${fire.round}}""")
