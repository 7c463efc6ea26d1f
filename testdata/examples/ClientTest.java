// Tests of a client of petstore, without any library. Run "go build" in ../.. once, then in this
// folder: java ClientTest.java (Java 17 or newer). With JUnit, each call of test in main becomes a
// method with @Test, start one with @BeforeAll, and the reset one with @BeforeEach.
import java.io.*;
import java.net.URI;
import java.net.http.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.regex.*;

class ClientTest {
    // The client under test: put yours in its place. It sends a request up to three times, and gives
    // up when an answer takes longer than its patience, in seconds.
    record Client(int patience) {
        void createPet(String pet) throws Exception {
            retry("POST", "/v1/pets", pet);
        }

        /** Returns the ids. */
        List<String> listPets() throws Exception {
            var ids = new ArrayList<String>();
            for (var next = "/v1/pets?limit=2"; !next.isEmpty();) {
                var page = retry("GET", next, "");
                ids.addAll(find("\"id\":(\\d+)", page.body()));
                next = String.join("", find("<(.*)>", page.headers().firstValue("Link").orElse("")));
            }
            return ids;
        }

        HttpResponse<String> retry(String method, String path, String body) throws Exception {
            for (int tries = 1; ; tries++) {
                try {
                    return send(method, path, body, patience);
                } catch (IOException | ExecutionException e) {
                    if (tries == 3) throw e;
                }
            }
        }
    }

    static HttpResponse<String> send(String method, String path, String body, int patience) throws Exception {
        var request = HttpRequest.newBuilder(URI.create(url + path)).header("Authorization", "Bearer test")
            .method(method, HttpRequest.BodyPublishers.ofString(body)).build();
        // The timeout of an HttpRequest would cover only the headers.
        var answer = http.sendAsync(request, HttpResponse.BodyHandlers.ofString());
        try {
            var response = answer.get(patience, TimeUnit.SECONDS);
            if (response.statusCode() >= 400) throw new IOException(response.statusCode() + " " + response.body());
            return response;
        } finally {
            answer.cancel(true); // closes the connection if the answer has not come
        }
    }

    static final HttpClient http = HttpClient.newHttpClient();
    static final String REX = "{\"name\":\"Rex\",\"categoryId\":7}";
    static Process petstore; // it ends when this process ends and so closes its standard input, however it ends
    static String url; // of petstore, http://127.0.0.1:PORT
    static boolean failed;

    static void start() throws IOException {
        var builder = new ProcessBuilder("../../petstore", "-addr", "127.0.0.1:0", "-stdin");
        builder.environment().put("PETSTORE_API_KEY", "test");
        if (!new File("../../petstore").exists()) throw new IOException("No petstore: run \"go build\" in ../.. first");
        petstore = builder.start();
        var base = petstore.inputReader().readLine();
        if (base == null) throw new IOException("petstore does not start: "
            + new String(petstore.getErrorStream().readAllBytes()));
        url = base.replace("/v1", "");
    }

    public static void main(String[] args) throws Exception {
        try {
            start();
        } catch (IOException e) {
            System.err.println(e.getMessage());
            System.exit(1);
        }
        var client = new Client(10);
        test("a pet is added once", () -> {
            client.createPet(REX);
            saw("201", 1);
        });
        test("two errors, then success", () -> {
            admin("PUT", "fault?code=503&retry-after=0&times=2&operation=createPet", "");
            client.createPet(REX);
            saw("503 503 201", 1);
        });
        test("the third page fails once", () -> {
            admin("POST", "reset", "[" + (REX + ",").repeat(6) + REX + "]");
            admin("PUT", "fault?code=500&skip=2&times=1&operation=listPets", "");
            equal(String.join(" ", client.listPets()), "1 2 3 4 5 6 7");
            saw("200 200 500 200 200", 7);
        });
        // java.net.http throws an IOException, and repeats by itself a GET but no POST. So it is retry
        // that sends this one again, and there are two pets.
        test("the answer of a create is lost", () -> {
            admin("PUT", "fault?code=lost&times=1&operation=createPet", "");
            client.createPet(REX);
            saw("0 201", 2);
        });
        test("the client gives up, and nothing is done", () -> giveUp("delay=10", "0", 0));
        test("the client gives up on half an answer", () -> giveUp("code=stall&times=1", "201", 1));
        System.exit(failed ? 1 : 0);
    }

    static void giveUp(String fault, String statuses, int pets) throws Exception {
        admin("PUT", "fault?" + fault + "&operation=createPet", "");
        try {
            new Client(2).createPet(REX);
            throw new AssertionError("the client did not give up");
        } catch (TimeoutException expected) {
        }
        saw(statuses, pets);
    }

    interface Test { void run() throws Exception; }

    static void test(String name, Test test) throws Exception {
        admin("POST", "reset", "");
        try {
            test.run();
            System.out.println("ok - " + name);
        } catch (Exception | AssertionError e) {
            System.out.println("FAILED - " + name);
            e.printStackTrace();
            failed = true;
        }
    }

    static void equal(Object got, Object want) {
        if (!got.equals(want)) throw new AssertionError("got " + got + ", want " + want);
    }

    /** Sends a request of the test itself. */
    static String admin(String method, String path, String body) throws Exception {
        return send(method, "/__admin/" + path, body, 10).body();
    }

    /** Checks the statuses in the journal, in the order of the answers, and the number of pets. */
    static void saw(String statuses, int pets) throws Exception {
        var end = System.nanoTime() + TimeUnit.SECONDS.toNanos(10); // a client that leaves is noticed a little later
        var got = "";
        while (!got.equals(statuses) && System.nanoTime() < end)
            got = String.join(" ", find("\"status\":(\\d+)", admin("GET", "requests", "")));
        equal(got, statuses);
        equal(find("\"id\":(\\d+)", send("GET", "/v1/pets", "", 10).body()).size(), pets);
    }

    static List<String> find(String regex, String text) {
        return Pattern.compile(regex).matcher(text).results().map(m -> m.group(1)).toList();
    }
}
